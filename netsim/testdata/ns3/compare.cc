// UDP over a star (leaves=1, spines=0) or a leaf-spine network in ns-3, for comparison with netsim.
//
// Links are point-to-point devices with drop-tail queues, switches are IP routers. With
// several spines each packet takes a random one. All datagrams of a transfer are put into the
// host's queue when it begins.
//
// usage: compare LEAVES SPINES HOSTS_PER_LEAF RATE_BPS UPLINK_BPS DELAY_PS PAYLOAD QUEUE_BYTES < transfers
// input: from to packets start_ps, one transfer per line
// output: "end I PS" per transfer (0: not all has arrived), "peak BYTES" of the switches' queues,
// "drops N", "events N", "wall SECONDS"
#include <chrono>
#include <iostream>
#include <vector>

#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

using namespace ns3;

struct Transfer {
    int from, to;
    uint32_t packets;
    int64_t start, end = 0;
    uint32_t arrived = 0;
};

static std::vector<Transfer> transfers;
static uint32_t payload, peak;
static uint64_t drops;

static void Received(size_t i, Ptr<Socket> socket) {
    while (Ptr<Packet> p = socket->Recv()) {
        if (++transfers[i].arrived == transfers[i].packets) {
            transfers[i].end = Simulator::Now().GetPicoSeconds();
        }
    }
}

static void SendAll(size_t i, Ptr<Socket> socket, Address to) {
    for (uint32_t k = 0; k < transfers[i].packets; k++) {
        socket->SendTo(Create<Packet>(payload), 0, to);
    }
}

static void Peak(uint32_t, uint32_t now) { peak = std::max(peak, now); }
static void Drop(Ptr<const Packet>) { drops++; }

int main(int argc, char** argv) {
    if (argc != 9) {
        std::cerr << "found " << argc - 1 << " arguments, want 8" << std::endl;
        return 2;
    }
    Time::SetResolution(Time::PS);
    const int leaves = atoi(argv[1]), spines = atoi(argv[2]), perLeaf = atoi(argv[3]);
    payload = atoi(argv[7]);
    Config::SetDefault("ns3::Ipv4GlobalRouting::RandomEcmpRouting", BooleanValue(true));
    NodeContainer hosts, leaf, spine;
    hosts.Create(leaves * perLeaf);
    leaf.Create(leaves);
    spine.Create(spines);
    InternetStackHelper stack;
    stack.Install(hosts);
    stack.Install(leaf);
    stack.Install(spine);
    Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.252");
    std::vector<Ipv4Address> address;
    auto join = [&](Ptr<Node> a, Ptr<Node> b, const char* rate, bool host) {
        PointToPointHelper link;
        link.SetDeviceAttribute("DataRate", StringValue(std::string(rate) + "bps"));
        link.SetChannelAttribute("Delay", TimeValue(PicoSeconds(atoll(argv[6]))));
        NetDeviceContainer devices = link.Install(a, b);
        auto addresses2 = addresses.Assign(devices);
        addresses.NewNetwork();
        TrafficControlHelper().Uninstall(devices);
        for (int side = 0; side < 2; side++) {
            auto queue = DynamicCast<PointToPointNetDevice>(devices.Get(side))->GetQueue();
            bool limited = !(host && side == 0);
            queue->SetMaxSize(QueueSize(limited ? std::string(argv[8]) + "B" : "2000000000B"));
            if (limited) {
                queue->TraceConnectWithoutContext("BytesInQueue", MakeCallback(&Peak));
            }
        }
        if (host) {
            address.push_back(addresses2.GetAddress(0));
        }
    };
    for (int h = 0; h < leaves * perLeaf; h++) {
        join(hosts.Get(h), leaf.Get(h / perLeaf), argv[4], true);
    }
    for (int l = 0; l < leaves; l++) {
        for (int s = 0; s < spines; s++) {
            join(leaf.Get(l), spine.Get(s), argv[5], false);
        }
    }
    for (auto switches : {leaf, spine}) { // the device's queue tells this layer that it is full, and that drops
        for (uint32_t i = 0; i < switches.GetN(); i++) {
            auto layer = switches.Get(i)->GetObject<TrafficControlLayer>();
            layer->TraceConnectWithoutContext("TcDrop", MakeCallback(&Drop));
        }
    }
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();
    Transfer t;
    while (std::cin >> t.from >> t.to >> t.packets >> t.start) {
        transfers.push_back(t);
    }
    for (size_t i = 0; i < transfers.size(); i++) {
        const Transfer& x = transfers[i];
        uint16_t port = 1000 + i;
        auto type = UdpSocketFactory::GetTypeId();
        Ptr<Socket> in = Socket::CreateSocket(hosts.Get(x.to), type);
        in->SetAttribute("RcvBufSize", UintegerValue(1 << 30));
        in->Bind(InetSocketAddress(Ipv4Address::GetAny(), port));
        in->SetRecvCallback([i](Ptr<Socket> s) { Received(i, s); });
        Ptr<Socket> out = Socket::CreateSocket(hosts.Get(x.from), type);
        Simulator::Schedule(PicoSeconds(x.start), &SendAll, i, out, InetSocketAddress(address[x.to], port));
    }
    auto begin = std::chrono::steady_clock::now();
    Simulator::Run();
    std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begin;
    for (size_t i = 0; i < transfers.size(); i++) {
        std::cout << "end " << i << " " << transfers[i].end << "\n";
    }
    std::cout << "peak " << peak << "\ndrops " << drops << "\nevents " << Simulator::GetEventCount() << "\nwall "
              << wall.count() << std::endl;
    Simulator::Destroy();
    return 0;
}
