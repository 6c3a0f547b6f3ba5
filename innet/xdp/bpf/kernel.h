/* What the programs use of the kernel: types, helpers by number, map definitions. Written
 * out, so that the object does not depend on installed headers. */
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef int s32;

#define SEC(name) __attribute__((section(name), used))
#define INLINE static __attribute__((always_inline)) inline
#define PACKED __attribute__((packed))

/* Map definitions, as BTF has them. */
#define uint(name, value) int(*name)[value]
#define type(name, value) typeof(value) *name

enum { MAP_HASH = 1, MAP_ARRAY = 2, MAP_PROGRAMS = 3, MAP_PERCPU = 6, MAP_RING = 27 };

struct xdp_md {
	u32 data, data_end, data_meta, ingress_ifindex, rx_queue_index, egress_ifindex;
};

struct bpf_spin_lock {
	u32 value;
};

enum { XDP_ABORTED, XDP_DROP, XDP_PASS, XDP_TX, XDP_REDIRECT };

static void *(*map_lookup)(void *map, const void *key) = (void *)1;
static long (*tail_call)(void *context, void *programs, u32 index) = (void *)12;
static long (*redirect)(u32 device, u64 flags) = (void *)23;
static long (*adjust_tail)(struct xdp_md *context, int delta) = (void *)65;
static long (*spin_lock)(struct bpf_spin_lock *lock) = (void *)93;
static long (*spin_unlock)(struct bpf_spin_lock *lock) = (void *)94;
static long (*ring_output)(void *ring, void *data, u64 size, u64 flags) = (void *)130;
static u64 (*ring_query)(void *ring, u64 what) = (void *)134; /* 0: bytes that wait */
static long (*loop)(u32 times, void *body, void *context, u64 flags) = (void *)181;

struct ethernet {
	u8 to[6], from[6];
	u16 kind;
} PACKED;

struct ipv4 {
	u8 version, service;
	u16 length, id, fragment;
	u8 hops, protocol;
	u16 sum;
	u32 from, to;
};

struct udp {
	u16 from, to, length, sum;
};

#define swap16(x) __builtin_bswap16(x)
