/* The switch of package innet as XDP programs: dispatch, on every device, finds the job of a
 * packet; each job has an add_rows of its own, loaded with the job's sizes as constants, so
 * that the verifier knows them.
 *
 * A packet that arrives can leave as one packet. What else follows from it is written into a
 * ring, and the process sends it. A multicast of what a host sent (ACK, the question who is
 * further) passes to the process, which sends it; the round register was checked and advanced
 * here.
 *
 * Packets of one job are handled by several CPUs at a time. A row is taken by comparing and
 * swapping its register, an aggregator has a lock, and rounds only advance: a CPU that is
 * late with a row of a round that is over changes nothing that is of a later one.
 */
#include "kernel.h"

enum { ACK = 1, FETCH = 2, ECN = 4, RESEND = 8, SUM = 16, DONE = 32, OVERFLOW = 64, FLAGS = 128 };
enum { HEADER = 40, LANES = 32, UNIT = 4 * LANES, UNITS_MOST = 11, HOSTS_MOST = 256 };

/* Once more than so many answers did not reach a host, the job is left to the process. */
enum { UNHEARD = 8 };

/* Constants of a job. */
volatile const u64 JOB = 0;
volatile const u32 SLOT = 0;    /* among jobs */
volatile const u16 PORT = 0;    /* of the switch, in network order */
volatile const u32 UNITS = 1;   /* of an aggregator */
volatile const u32 HOSTS = 1;
volatile const u32 BLOCKS = 1;
volatile const u32 CREDIT = 1;  /* packets after which a host is told how many have come */
volatile const u32 BACKLOG = 1; /* bytes in the ring beyond which packets that leave are marked */

/* The header of package innet; see its comment. */
struct header {
	u32 source, destination;
	u16 block, count;
	u8 flags, units;
	u16 from, to, value, last, zero;
	u32 round, sequence;
	u64 job;
};

/* A frame. Its parts are reached by functions, whose results the compiler takes for aligned:
 * it would read bytes of a packed one. */
struct frame {
	struct ethernet eth;
	u8 ip[sizeof(struct ipv4)], udp[sizeof(struct udp)], header[HEADER];
} PACKED;

enum { BELOW = sizeof(struct frame) - HEADER }; /* headers below ours */

INLINE struct ipv4 *ip_of(struct frame *f) { return (void *)f->ip; }
INLINE struct udp *udp_of(struct frame *f) { return (void *)f->udp; }
INLINE struct header *header_of(struct frame *f) { return (void *)f->header; }

/* Who may take part: shared by all jobs. */
struct address {
	u32 ip;
	u16 port, zero;
};

struct member {
	u32 job, host;
};

struct {
	uint(type, MAP_HASH);
	uint(max_entries, 4096);
	type(key, struct address);
	type(value, struct member);
} members SEC(".maps");

struct {
	uint(type, MAP_PROGRAMS);
	uint(max_entries, 16);
	type(key, u32);
	type(value, u32);
} jobs SEC(".maps");

struct counts {
	u64 packets, bytes, sent, dropped, recirculated, passed, impossible;
};

struct {
	uint(type, MAP_PERCPU);
	uint(max_entries, 1);
	type(key, u32);
	type(value, struct counts);
} stats SEC(".maps");

/* What the process is to send: by job and port. */
struct record {
	u32 job, port;
	struct header h;
	s32 body[512]; /* more than a packet has: what the verifier takes for possible */
};

struct {
	uint(type, MAP_RING);
	uint(max_entries, 1 << 24);
} ring SEC(".maps");

struct {
	uint(type, MAP_PERCPU);
	uint(max_entries, 1);
	type(key, u32);
	type(value, struct record);
} records SEC(".maps");

/* The table of a job. Rows and slots of all blocks are in a row. */
struct block {
	u32 row, rows, slot, slots;
};

struct row {
	u32 at, count; /* into[at] and count-1 more */
	u32 port, zero;
};

struct slot {
	u32 next;
	u16 need, port, host, zero;
};

#define TABLE(name, value_type) \
	struct { \
		uint(type, MAP_ARRAY); \
		uint(max_entries, 1); \
		type(key, u32); \
		type(value, value_type); \
	} name SEC(".maps")

TABLE(blocks, struct block);
TABLE(rows, struct row);
TABLE(slots, struct slot);
TABLE(into, u32);

/* Registers. */
struct aggregator {
	struct bpf_spin_lock lock;
	u32 round;
	u16 count;
	u8 overflow, zero;
	u32 zero2;
	s32 lanes[LANES];
};

TABLE(added, u32); /* the round in which a row was added */
TABLE(aggregators, struct aggregator);

/* now is the round, and above it what was agreed on in the round before, and whether any
 * packet has said which round it is, and whether a round has ended here: read at once. */
struct state {
	u64 now;
	struct bpf_spin_lock lock;
	u32 left;
	u64 done[HOSTS_MOST / 64];
	u16 value;
	u8 stopped;
};

#define BEGUN (1ULL << 48)
#define ENDED (1ULL << 49) /* a round has ended here */

TABLE(states, struct state);

/* A host: where packets for it go is learnt from its own. */
struct host {
	u32 device, ip, own_ip;
	u16 port;
	u8 mac[6], own_mac[6];
	u16 zero;
	u32 received, credited;
	u32 unheard, unheard_round; /* answers to the same question */
	u32 round, heard;           /* that its last packet was of, until a round has ended here */
};

struct {
	uint(type, MAP_ARRAY);
	uint(max_entries, HOSTS_MOST);
	type(key, u32);
	type(value, struct host);
} hosts SEC(".maps");

/* A packet that is to be made: a sum, or one without a body. */
struct out {
	u32 slot, next, round, sequence;
	u16 block, count, host, port, value, last;
	u8 flags, units;
	u16 zero;
};

INLINE void *only(void *map)
{
	u32 zero = 0;
	return map_lookup(map, &zero);
}

#define FRAME(f, context) \
	struct frame *f = (void *)(long)context->data; \
	if ((void *)(f + 1) > (void *)(long)context->data_end)

/* ours reports whether a frame is a packet for the switch, without IP options or fragments. */
INLINE int ours(struct frame *f)
{
	return f->eth.kind == swap16(0x0800) && ip_of(f)->version == 0x45 && ip_of(f)->protocol == 17 &&
	       !(ip_of(f)->fragment & swap16(0x3fff)) && udp_of(f)->to == PORT;
}

INLINE struct member *member_of(struct frame *f)
{
	struct address key = { .ip = ip_of(f)->from, .port = udp_of(f)->from };
	return map_lookup(&members, &key);
}

SEC("xdp")
int dispatch(struct xdp_md *context)
{
	FRAME(f, context) return XDP_PASS;
	if (!ours(f))
		return XDP_PASS;
	struct member *m = member_of(f);
	if (m)
		tail_call(context, &jobs, m->job);
	return XDP_PASS;
}

/* Packets that leave. */

INLINE u8 mark(void) { return ring_query(&ring, 0) > BACKLOG ? ECN : 0; }

INLINE struct header header_for(struct out *o, u8 flags)
{
	return (struct header){ .source = o->next, .destination = o->next, .block = o->block, .count = o->count,
		.flags = flags, .units = o->flags & SUM ? UNITS : 0, .to = o->host, .value = o->value, .last = o->last,
		.round = o->round, .sequence = o->sequence, .job = JOB };
}

INLINE void count_sent(void)
{
	struct counts *c = only(&stats);
	if (c)
		c->sent++;
}

/* resize makes a frame one of so many bytes of payload. */
INLINE int resize(struct xdp_md *context, u32 bytes)
{
	int delta = (int)(BELOW + bytes) - (int)(context->data_end - context->data);
	return delta ? adjust_tail(context, delta) : 0;
}

INLINE u16 header_sum(struct ipv4 *ip)
{
	u32 sum = 0;
	u16 *words = (u16 *)ip;
#pragma unroll
	for (int i = 0; i < 10; i++)
		sum += words[i];
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return ~sum;
}

/* send addresses a frame, whose header and body are written, to a host. */
INLINE int send(struct xdp_md *context, u32 port, u32 bytes)
{
	struct host *to = map_lookup(&hosts, &port);
	if (!to || !to->device)
		return XDP_DROP; /* it has not been heard */
	FRAME(f, context) return XDP_DROP;
	__builtin_memcpy(f->eth.to, to->mac, 6);
	__builtin_memcpy(f->eth.from, to->own_mac, 6);
	f->eth.kind = swap16(0x0800);
	*ip_of(f) = (struct ipv4){ .version = 0x45, .length = swap16(bytes + 28), .fragment = swap16(0x4000),
		.hops = 64, .protocol = 17, .from = to->own_ip, .to = to->ip };
	ip_of(f)->sum = header_sum(ip_of(f));
	*udp_of(f) = (struct udp){ .from = PORT, .to = to->port, .length = swap16(bytes + 8) };
	count_sent();
	/* Not XDP_TX where it is the same device: on a veth whose peer has no program, nobody would
	 * be told that it has come. */
	return redirect(to->device, 0);
}

/* copy_sum writes the lanes of a sum into the body of a frame. */
enum { COPIED, OVERFLOWED, GONE };

INLINE int copy_sum(struct xdp_md *context, struct out *o)
{
	int result = COPIED;
	for (u32 k = 0; k < UNITS_MOST && k < o->units; k++) {
		u32 index = o->slot * UNITS + k;
		struct aggregator *a = map_lookup(&aggregators, &index);
		s32 *body = (void *)(long)context->data + sizeof(struct frame) + k * UNIT;
		if (!a)
			return GONE;
		if ((void *)(body + LANES) > (void *)(long)context->data_end) /* a row that had overflowed has no body */
			return a->overflow && a->round == o->round ? OVERFLOWED : GONE;
		spin_lock(&a->lock);
		if (a->round != o->round)
			result = GONE;
		else if (a->overflow && result == COPIED)
			result = OVERFLOWED;
		__builtin_memcpy(body, a->lanes, UNIT);
		spin_unlock(&a->lock);
	}
	return result;
}

/* make writes a packet into a frame that is large enough, and sends it. */
INLINE int make(struct xdp_md *context, struct out *o)
{
	u32 bytes = HEADER;
	u8 flags = o->flags | mark();
	if (o->flags & SUM) {
		int copied = copy_sum(context, o);
		if (copied == GONE)
			return XDP_DROP;
		if (copied == OVERFLOWED)
			flags |= OVERFLOW;
		else
			bytes += o->units * UNIT;
	}
	if (resize(context, bytes))
		return XDP_DROP;
	FRAME(f, context) return XDP_DROP;
	*header_of(f) = header_for(o, flags);
	return send(context, o->port, bytes);
}

/* give has the process send a packet. Where the ring is full it is lost, as any packet may be. */
INLINE void give(struct out *o)
{
	struct record *r = only(&records);
	u32 bytes = 0;
	u8 flags = o->flags | mark();
	if (!r)
		return;
	for (u32 k = 0; (o->flags & SUM) && k < UNITS_MOST && k < o->units; k++) {
		u32 index = o->slot * UNITS + k;
		struct aggregator *a = map_lookup(&aggregators, &index);
		if (!a)
			return;
		spin_lock(&a->lock);
		u32 round = a->round;
		u8 overflow = a->overflow;
		__builtin_memcpy(r->body + k * LANES, a->lanes, UNIT);
		spin_unlock(&a->lock);
		if (round != o->round)
			return;
		if (overflow)
			flags |= OVERFLOW;
		bytes += UNIT;
	}
	if (flags & OVERFLOW)
		bytes = 0;
	r->job = SLOT;
	r->port = o->port;
	r->h = header_for(o, flags);
	ring_output(&ring, r, __builtin_offsetof(struct record, body) + (bytes & 2047), 0);
}

/* Packets that arrive. */

/* pass is what a packet is being handled with. */
struct pass {
	struct xdp_md *context;
	u32 round, host, last, block;
	u32 at, unit, units, slot;
	struct slot to;
	u16 adds;
	u8 overflow, leaves; /* first is to be sent */
	struct out first;
};

/* emit sends a packet in the place of the one that came, or later. */
INLINE void emit(struct pass *p, struct out *o)
{
	if (p->leaves) {
		give(o);
		return;
	}
	p->first = *o;
	p->leaves = 1;
}

enum { POSSIBLE, IMPOSSIBLE, UNKNOWN };

/* latest keeps the latest round that a host was in by its last packet. */
static long latest(u32 i, u32 *round)
{
	struct host *h = map_lookup(&hosts, &i);
	if (h && h->heard && (s32)(h->round - *round) > 0)
		*round = h->round;
	return 0;
}

/* possible tells whether a host can be in a round, as in package innet/udp: none is in a later one
 * than a switch that has ended one. Before that, a round that no host is in any more was a forged
 * packet's: registers have rows of it, and the process takes the job over with empty ones. */
INLINE int possible(struct state *s, struct host *me, u32 round, u64 now)
{
	if (now & ENDED)
		return (s32)(round - (u32)now) > 0 ? IMPOSSIBLE : POSSIBLE;
	me->round = round;
	me->heard = 1;
	if (!(now & BEGUN) || (s32)((u32)now - round) <= 0)
		return POSSIBLE;
	loop(HOSTS, latest, &round, 0);
	if ((s32)((u32)now - round) <= 0)
		return POSSIBLE;
	s->stopped = 1;
	return UNKNOWN;
}

/* begin goes on to a round. */
INLINE void begin(struct state *s, u32 round, u16 last)
{
	spin_lock(&s->lock);
	if (!(s->now & ENDED) && ((s32)(round - (u32)s->now) > 0 || !(s->now & BEGUN))) {
		s->value = 0;
		s->left = HOSTS;
		s->done[0] = s->done[1] = s->done[2] = s->done[3] = 0;
		*(volatile u64 *)&s->now = round | (u64)last << 32 | BEGUN;
	}
	spin_unlock(&s->lock);
}

/* late answers a host that has not heard that a round is over. One that never hears is not
 * reached by what leaves here: 1, the job is for the process. */
INLINE int late(struct pass *p, struct state *s, struct host *me, struct header *h, u64 now)
{
	if (!(h->flags & DONE) || h->round != (u32)now - 1)
		return 0;
	if (me->unheard_round != h->round) {
		me->unheard_round = h->round;
		me->unheard = 0;
	}
	if (++me->unheard > UNHEARD) {
		s->stopped = 1;
		return 1;
	}
	struct out o = { .flags = DONE, .round = h->round, .value = now >> 32, .port = p->host };
	emit(p, &o);
	return 0;
}

/* tell tells another host that a round is over. */
static long tell(u32 i, struct pass *p)
{
	struct out o = p->first;
	o.port = i;
	if (i != p->host)
		give(&o);
	return 0;
}

/* barrier counts the hosts that are done. */
INLINE int barrier(struct pass *p, struct state *s, u16 value)
{
	u32 word = p->host / 64 % (HOSTS_MOST / 64);
	u64 bit = 1ULL << p->host % 64;
	int over = 0, same;
	struct out o = { .flags = DONE, .round = p->round, .port = p->host };
	spin_lock(&s->lock);
	same = (u32)s->now == p->round;
	if (same) {
		if (!(s->done[word] & bit)) {
			s->done[word] |= bit;
			s->left--;
		}
		if (value > s->value)
			s->value = value;
		if (!s->left) {
			over = 1;
			o.value = s->value;
			o.last = s->now >> 32;
			s->value = 0;
			s->left = HOSTS;
			s->done[0] = s->done[1] = s->done[2] = s->done[3] = 0;
			*(volatile u64 *)&s->now = (u32)(p->round + 1) | (u64)o.value << 32 | BEGUN | ENDED;
		}
	}
	spin_unlock(&s->lock);
	if (over) {
		emit(p, &o);
		loop(HOSTS, tell, p, 0);
	}
	return same;
}

/* release empties an aggregator whose host adds the rows itself. */
INLINE void release(struct pass *p, struct block *b, u32 slot)
{
	if (slot >= b->slots)
		return;
	for (u32 k = 0; k < UNITS_MOST && k < UNITS; k++) {
		u32 index = slot * UNITS + k;
		struct aggregator *a = map_lookup(&aggregators, &index);
		if (!a)
			return;
		spin_lock(&a->lock);
		if ((s32)(p->round - a->round) >= 0) {
			a->round = p->round;
			a->count = 0;
		}
		spin_unlock(&a->lock);
	}
}

/* add_lanes adds b to a, and reports whether a lane overflowed: two lanes at a time, whose
 * highest bits are added apart, so that nothing is carried from one into the other. */
INLINE int add_lanes(s32 *a, s32 *b)
{
	const u64 high = 0x8000000080000000ULL;
	u64 over = 0, *to = (void *)a, *from = (void *)b;
#pragma unroll
	for (int i = 0; i < LANES / 2; i++) {
		u64 x = to[i], y = from[i], sum = ((x & ~high) + (y & ~high)) ^ ((x ^ y) & high);
		over |= (x ^ sum) & (y ^ sum);
		to[i] = sum;
	}
	return !!(over & high);
}

/* next_slot finds the aggregator that is next in the table. */
INLINE int next_slot(struct pass *p)
{
	u32 *slot = map_lookup(&into, &p->at);
	struct block *b = map_lookup(&blocks, &p->block);
	if (!slot || !b)
		return 0;
	p->slot = *slot;
	u32 index = b->slot + p->slot;
	struct slot *to = map_lookup(&slots, &index);
	if (!to)
		return 0;
	p->to = *to;
	p->at++;
	p->unit = p->units;
	return 1;
}

/* count_row counts a row that is added to an aggregator, and reports whether it was the last.
 * REQUIRES: its lock. */
INLINE int count_row(struct pass *p, struct aggregator *a)
{
	a->count += p->adds;
	if (a->count != p->to.need)
		return 0;
	a->count = 0; /* released */
	return 1;
}

/* first reports whether an aggregator has no row of this round yet, and makes it one of it.
 * REQUIRES: its lock. */
INLINE int first(struct pass *p, struct aggregator *a)
{
	if (a->round == p->round && a->count)
		return 0;
	a->round = p->round;
	a->count = 0;
	a->overflow = 0;
	return 1;
}

/* add_unit is one pass: one unit of a row and one aggregator. The unit in front is the last,
 * so that when that is complete all are. */
static long add_unit(u32 i, struct pass *p)
{
	if (!p->unit && !next_slot(p))
		return 1;
	p->unit--;
	u32 index = p->slot * UNITS + p->unit;
	struct aggregator *a = map_lookup(&aggregators, &index);
	s32 *body = (void *)(long)p->context->data + sizeof(struct frame) + (p->unit & 15) * UNIT;
	int full = 0;
	if (!a)
		return 1;
	if (p->overflow) {
		spin_lock(&a->lock);
		if ((s32)(p->round - a->round) >= 0) {
			first(p, a);
			a->overflow = 1;
			full = count_row(p, a);
		}
		spin_unlock(&a->lock);
	} else if ((void *)(body + LANES) <= (void *)(long)p->context->data_end) {
		spin_lock(&a->lock);
		if ((s32)(p->round - a->round) >= 0) { /* else another CPU is in the next round */
			if (first(p, a))
				__builtin_memcpy(a->lanes, body, UNIT);
			else if (!a->overflow)
				a->overflow = add_lanes(a->lanes, body);
			full = count_row(p, a);
		}
		spin_unlock(&a->lock);
	}
	if (full && !p->unit) {
		struct out o = { .flags = SUM, .slot = p->slot, .next = p->to.next, .round = p->round, .block = p->block,
			.count = p->to.need, .host = p->to.host, .port = p->to.port, .last = p->last, .units = p->units };
		emit(p, &o);
	}
	return 0;
}

/* add is a row for the aggregators that the table has for it: 0 if it is not to be added. */
INLINE int add(struct pass *p, struct block *b, struct header *h, u32 words, struct counts *c)
{
	u32 index = b->row + h->source, source = h->source;
	p->units = words / LANES;
	p->overflow = !!(h->flags & OVERFLOW);
	p->adds = h->flags & SUM ? h->count : 1;
	if (source >= b->rows || words % LANES || p->units > UNITS || (!p->units && !p->overflow))
		return 0;
	if (!p->units)
		p->units = UNITS;
	struct row *r = map_lookup(&rows, &index);
	u32 *was = map_lookup(&added, &source);
	if (!r || !was || r->port != p->host)
		return 0;
	u32 old = *(volatile u32 *)was;
	if ((s32)(p->round - old) <= 0 || __sync_val_compare_and_swap(was, old, p->round) != old)
		return 0; /* a duplicate, or one of a round that is over */
	p->at = r->at;
	u32 passes = r->count * (words / LANES);
	if (passes > 1)
		c->recirculated += passes - 1;
	loop(r->count * p->units, add_unit, p, 0);
	return 1;
}

INLINE int same_mac(u8 *a, u8 *b)
{
	return *(u16 *)a == *(u16 *)b && *(u16 *)(a + 2) == *(u16 *)(b + 2) && *(u16 *)(a + 4) == *(u16 *)(b + 4);
}

/* learn keeps where packets of a host come from. */
INLINE void learn(struct host *me, struct frame *f, struct xdp_md *context)
{
	u32 device = context->ingress_ifindex;
	if (me->device == device && me->own_ip == ip_of(f)->to && same_mac(me->mac, f->eth.from))
		return;
	me->ip = ip_of(f)->from;
	me->port = udp_of(f)->from;
	me->own_ip = ip_of(f)->to;
	__builtin_memcpy(me->mac, f->eth.from, 6);
	__builtin_memcpy(me->own_mac, f->eth.to, 6);
	me->device = device;
}

/* credit tells a host how many of its packets have come. */
INLINE void credit(struct pass *p, struct host *me, u32 received)
{
	if (received - me->credited < CREDIT)
		return;
	me->credited = received;
	struct out o = { .flags = DONE | ACK, .sequence = received, .port = p->host };
	if (ring_query(&ring, 0))
		give(&o); /* behind the sums that wait there: hosts do not send faster than the process does */
	else
		emit(p, &o);
}

enum { NOTHING, HANDLED, FORWARD, PROCESS };

/* handle is what a packet does. */
INLINE int handle(struct pass *p, struct host *me, struct header *h, u32 words, struct counts *c)
{
	struct state *s = only(&states);
	u8 flags = h->flags;
	if (!s || h->job != JOB || (h->block >= BLOCKS && !(flags & (DONE | ACK))))
		return NOTHING;
	if (s->stopped)
		return PROCESS;
	u64 now = *(volatile u64 *)&s->now;
	switch (possible(s, me, h->round, now)) {
	case IMPOSSIBLE:
		c->impossible++;
		return NOTHING;
	case UNKNOWN:
		return PROCESS;
	}
	if ((flags & ~ECN) == (DONE | FETCH))
		return PROCESS;
	s32 ahead = h->round - (u32)now;
	if (ahead > 0 || !(now & BEGUN)) {
		begin(s, h->round, h->last);
		now = *(volatile u64 *)&s->now;
		if (h->round != (u32)now)
			return NOTHING; /* another CPU has gone on */
	} else if (ahead < 0) {
		if (late(p, s, me, h, now))
			return PROCESS;
		return p->leaves ? HANDLED : NOTHING;
	}
	p->last = (u16)(now >> 32);
	if (flags & DONE)
		return barrier(p, s, h->value) ? HANDLED : NOTHING;
	if (flags & ACK)
		return PROCESS;
	u32 number = p->block = h->block;
	struct block *b = map_lookup(&blocks, &number);
	if (!b)
		return NOTHING;
	if (flags & FETCH)
		return FORWARD;
	if (flags & RESEND) {
		release(p, b, h->destination);
		return FORWARD;
	}
	return add(p, b, h, words, c) ? HANDLED : NOTHING;
}

SEC("xdp")
int add_rows(struct xdp_md *context)
{
	FRAME(f, context) return XDP_PASS;
	if (!ours(f))
		return XDP_PASS;
	struct member *m = member_of(f);
	struct counts *c = only(&stats);
	if (!m || m->job != SLOT || !c)
		return XDP_PASS;
	u32 bytes = swap16(udp_of(f)->length) - 8, host = m->host, to = header_of(f)->to;
	struct host *me = map_lookup(&hosts, &host);
	if (!me)
		return XDP_PASS;
	c->packets++;
	c->bytes += bytes;
	if (bytes < HEADER || bytes > HEADER + UNITS_MOST * UNIT || bytes % 4 || header_of(f)->flags >= FLAGS || header_of(f)->zero ||
	    BELOW + bytes > context->data_end - context->data) {
		c->dropped++;
		return XDP_DROP;
	}
	learn(me, f, context);
	u32 received = __sync_fetch_and_add(&me->received, 1) + 1;
	struct header h = *header_of(f);
	struct pass p = { .context = context, .host = host, .round = h.round };
	int what = handle(&p, me, &h, (bytes - HEADER) / 4, c);
	if (what == PROCESS) {
		c->passed++;
		return XDP_PASS;
	}
	if (what == NOTHING)
		c->dropped++;
	if (what == FORWARD)
		p.leaves = 1; /* the packet itself: what else there is comes later */
	credit(&p, me, received);
	if (what == FORWARD)
		return to < HOSTS ? send(context, to, bytes) : XDP_DROP;
	return p.leaves ? make(context, &p.first) : XDP_DROP;
}

char terms[] SEC("license") = "none"; /* no helper here asks for a licence */
