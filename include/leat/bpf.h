/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bpf.h: unmodified eBPF objects: open, configure, load; programs; maps.
 *
 *   leat_bpf_object_open()   the ELF file goes through leat-load, a process without privileges, which gives an image
 *   leat_bpf_object_set()    global variables are overridden, maps resized
 *   leat_bpf_object_load()   maps are made, every program is verified and made ready to run
 *   leat_bpf_prog_run()      one packet; or leat_xdp_prog_create_bpf() (xdp_prog.h) to attach it to ports
 *
 * Maps may be read and written by a control thread while programs run. Return codes are the kernel's.
 */
#ifndef LEAT_BPF_H
#define LEAT_BPF_H

#include <leat/diag.h>
#include <leat/log.h>
#include <leat/xdp.h>

LEAT_BEGIN_DECLS

struct leat_bpf_object;
struct leat_bpf_prog;
struct leat_bpf_map;
struct leat_bpf_env;

/* ---- environment: what programs see of the world ---- */

/** CPUs that programs can see: workers. */
#define LEAT_BPF_CPUS_MAX 32u

/** Receives what a program traces (bpf_trace_printk), one line without its end. *worker*. */
typedef void leat_bpf_trace_fn(void *arg, const char *line);

/** What runs programs. Both give the same results, traps and fuel. */
enum leat_bpf_engine {
	LEAT_BPF_ENGINE_AUTO,   /* compiled where that is possible, else interpreted, with one warning in the log */
	LEAT_BPF_ENGINE_INTERP,
	LEAT_BPF_ENGINE_JIT,    /* compiled, or an object does not load */
	LEAT_BPF_ENGINES
};

/** Whether the running kernel's verifier is asked about each program, too. That needs CAP_BPF and CAP_NET_ADMIN. */
enum leat_bpf_kernel_verifier {
	LEAT_BPF_KERNEL_OFF,
	LEAT_BPF_KERNEL_ASK,     /* what it says is noted in struct leat_bpf_check; what it refuses is a warning in the log */
	LEAT_BPF_KERNEL_REQUIRE, /* what it refuses, or cannot be asked about, does not load */
	LEAT_BPF_KERNEL_VERIFIERS
};

struct leat_bpf_env_opts {
	size_t size;                /* sizeof(struct leat_bpf_env_opts) */
	unsigned int cpus;          /* copies of per-CPU values, 1..LEAT_BPF_CPUS_MAX; 0: 1 */
	uint64_t fuel;              /* instructions' worth of backward jumps and calls that one run may make; 0: 2^23 */
	bool replay;                /* time is what leat_bpf_env_set_time() said; random numbers come from seed */
	uint64_t seed;
	leat_bpf_trace_fn *trace;   /* NULL: traces go nowhere */
	void *trace_arg;
	struct leat_epoch *epoch;   /* grace periods of the workers (private type); NULL: one of its own, one reader */
	unsigned int engine;        /* enum leat_bpf_engine */
	bool perf_map;              /* compiled programs are named in /tmp/perf-PID.map, for perf(1) */
	const struct leat_log *log; /* borrowed; NULL: messages go nowhere */
	unsigned int kernel_verifier; /* enum leat_bpf_kernel_verifier */
	bool coverage;              /* count what runs: leat_bpf_prog_cover(); programs are interpreted then */
};

/** Makes an environment. *control*. Returns 0, -EINVAL, -E2BIG, -ENOMEM. */
LEAT_API int leat_bpf_env_create(const struct leat_bpf_env_opts *opts, struct leat_bpf_env **env);
/** Frees it; every object in it must be closed. NULL allowed. */
LEAT_API void leat_bpf_env_destroy(struct leat_bpf_env *env);
/** Replay: sets what bpf_ktime_get_ns() and its kin give, nanoseconds. Also a quiescent state of the one reader. */
LEAT_API void leat_bpf_env_set_time(struct leat_bpf_env *env, uint64_t ns);

/* ---- objects ---- */

struct leat_bpf_object_opts {
	size_t size;              /* sizeof(struct leat_bpf_object_opts) */
	const char *loader;       /* path of leat-load; NULL: beside the running program, then where it was installed */
	const char *btf;          /* BTF of a kernel for CO-RE; NULL: the running kernel's, where there is one */
	unsigned int timeout_ms;  /* for leat-load; 0: 10 s */
	bool strict;              /* refuse a program that would need tests at run time */
};

/**
 * Reads an ELF object through leat-load. Mistakes name program, instruction and source line in @diag. *control*.
 * Returns 0; -EINVAL (not such an object, or refused); -ENOENT and other errnos of the file; -ETIMEDOUT; -ENOMEM.
 */
LEAT_API int leat_bpf_object_open(struct leat_bpf_env *env, const char *path, const struct leat_bpf_object_opts *opts,
				  struct leat_diag *diag, struct leat_bpf_object **obj);
/** The same from an image that leat-load wrote (copied). Every field of it is checked. */
LEAT_API int leat_bpf_object_open_image(struct leat_bpf_env *env, const void *image, size_t len,
					struct leat_diag *diag, struct leat_bpf_object **obj);
/** Ends programs and maps. They must be attached nowhere. NULL allowed. *control*. */
LEAT_API void leat_bpf_object_close(struct leat_bpf_object *obj);

/**
 * Before load: sets global variable @name ("limit", "cfg.limit", "table[3]") from @text: a number, a character string,
 * or true and false, by its type. Returns 0; -ENOENT (no such variable); -EINVAL; both with a sentence in @diag.
 */
LEAT_API int leat_bpf_object_set(struct leat_bpf_object *obj, const char *name, const char *text,
				 struct leat_diag *diag);
/** Before load: gives map @name another number of entries. Returns 0, -ENOENT, -EINVAL (0, or a global data map). */
LEAT_API int leat_bpf_object_resize(struct leat_bpf_object *obj, const char *map, uint32_t max_entries);
/** Makes maps and verifies programs. Only @prog and what it needs when it is not NULL. *control*. 0 or an errno. */
LEAT_API int leat_bpf_object_load(struct leat_bpf_object *obj, const char *prog, struct leat_diag *diag);

LEAT_API const char *leat_bpf_object_license(const struct leat_bpf_object *obj);
/**
 * The @idx-th program or map, or NULL past the end; in the order of the object file. After load of one program, only the
 * maps that it needs; programs all the same.
 */
LEAT_API struct leat_bpf_prog *leat_bpf_object_prog_get(struct leat_bpf_object *obj, unsigned int idx);
LEAT_API struct leat_bpf_map *leat_bpf_object_map_get(struct leat_bpf_object *obj, unsigned int idx);
/** By name; a program also by its section ("xdp"), a map also by the object's name for global data (".rodata"). */
LEAT_API struct leat_bpf_prog *leat_bpf_object_prog_find(struct leat_bpf_object *obj, const char *name);
LEAT_API struct leat_bpf_map *leat_bpf_object_map_find(struct leat_bpf_object *obj, const char *name);

/* ---- programs ---- */

LEAT_API const char *leat_bpf_prog_name(const struct leat_bpf_prog *prog);
LEAT_API const char *leat_bpf_prog_section(const struct leat_bpf_prog *prog);
/** Instructions as loaded. */
LEAT_API unsigned int leat_bpf_prog_len(const struct leat_bpf_prog *prog);
/** Bytes of machine code; 0: it is interpreted, or not loaded. */
LEAT_API unsigned int leat_bpf_prog_code_size(const struct leat_bpf_prog *prog);
/** Whether it declares xdp.frags. */
LEAT_API bool leat_bpf_prog_frags(const struct leat_bpf_prog *prog);
/** Whether it is for packets that leave by an entry of a DEVMAP ("xdp/devmap"): it is attached to no port. */
LEAT_API bool leat_bpf_prog_egress(const struct leat_bpf_prog *prog);
/** Of a loaded program: whether it may change bytes or edges of the packet. */
LEAT_API bool leat_bpf_prog_writes(const struct leat_bpf_prog *prog);
/** The number by which an entry of a DEVMAP of the same object names it, from 1: bpf_prog of struct bpf_devmap_val. */
LEAT_API uint32_t leat_bpf_prog_number(const struct leat_bpf_prog *prog);
/** libxdp's run configuration: priority (default 50), and a bit per action after which the chain goes on. */
LEAT_API uint32_t leat_bpf_prog_run_prio(const struct leat_bpf_prog *prog);
LEAT_API uint32_t leat_bpf_prog_chain_actions(const struct leat_bpf_prog *prog);

/**
 * Runs a loaded program on one packet, as CPU @cpu. Returns the value of r0, LEAT_XDP_ABORTED after a trap. *worker*
 * (each CPU number on one thread at a time).
 */
LEAT_API uint32_t leat_bpf_prog_run(struct leat_bpf_prog *prog, struct leat_xdp_buff *xdp, unsigned int cpu);
/** The same for a packet that is about to leave by port @port: what the program reads as egress_ifindex. */
LEAT_API uint32_t leat_bpf_prog_run_egress(struct leat_bpf_prog *prog, struct leat_xdp_buff *xdp, unsigned int cpu,
					   uint32_t port);

/** Where the last program that said XDP_REDIRECT on a CPU wants its packet to go. */
struct leat_bpf_redirect {
	struct leat_bpf_map *map; /* NULL: key is a port number */
	uint32_t key;
	uint64_t flags;           /* as given to the helper */
	uint32_t port;            /* the port that it comes to; 0: none */
	struct leat_bpf_prog *prog; /* runs before it leaves there; NULL: none */
};
/** Reads it, after leat_bpf_prog_run() on that CPU returned LEAT_XDP_REDIRECT. *worker* of that CPU. */
LEAT_API void leat_bpf_env_redirect(const struct leat_bpf_env *env, unsigned int cpu,
				    struct leat_bpf_redirect *redirect);

/** Why programs were ended. */
struct leat_bpf_trap {
	const char *reason;   /* "access outside its region", "out of fuel" ... */
	unsigned int insn;    /* number of the instruction in the program */
	uint64_t count;
	const char *source;   /* "file.c:12: text", or NULL; valid until this thread asks again */
};
/** The @idx-th place at which the program was ended so far; false past the end. *any*. */
LEAT_API bool leat_bpf_prog_trap(const struct leat_bpf_prog *prog, unsigned int idx, struct leat_bpf_trap *trap);

/** How often an instruction of a loaded program ran, all workers together, and what it is. */
struct leat_bpf_cover {
	uint64_t hits;        /* 0 where the environment does not count */
	bool jump;            /* a conditional jump; of its hits: */
	uint64_t taken, fell; /* went to its target, went on behind it; what is missing was ended at it by a trap */
	bool reachable;       /* on some path that the verifier saw */
	unsigned int slots;   /* 2: a 64-bit load; the next number is no instruction but its second half */
	const char *text;     /* "if r1 == 5 goto +3"; valid until this thread asks again */
	const char *file;     /* as the compiler named it; NULL: the object does not say, or it is of no line */
	unsigned int line;    /* from 1 */
	const char *source;   /* the text of that line */
};
/** Instruction @insn; false past the end, and of a program that is not loaded. *any*. */
LEAT_API bool leat_bpf_prog_cover(const struct leat_bpf_prog *prog, unsigned int insn, struct leat_bpf_cover *cover);

/** What the running kernel's verifier said of a program. */
enum leat_bpf_kernel_answer {
	LEAT_BPF_KERNEL_NOT_ASKED,
	LEAT_BPF_KERNEL_ACCEPTS,
	LEAT_BPF_KERNEL_REFUSES,
	LEAT_BPF_KERNEL_UNABLE, /* it could not be asked */
};

/** What the verifier found of a loaded program. */
struct leat_bpf_check {
	unsigned int insns;      /* as loaded */
	unsigned int reached;    /* of them on some path */
	unsigned int proven;     /* accesses that need no look at run time, memory arguments of helpers included */
	unsigned int guarded;    /* accesses that are tested at run time: leat_bpf_prog_guard() */
	unsigned int stack;      /* bytes, of the deepest chain of calls */
	uint64_t longest;        /* instructions of the longest path, callees included; 0: there are loops */
	unsigned int walked;     /* instructions that the verifier looked at */
	uint64_t verify_ns;      /* how long that took */
	bool writes_packet;      /* it may change bytes or edges of the packet */
	unsigned int kernel;     /* enum leat_bpf_kernel_answer */
	const char *kernel_says; /* why it refuses, the last sentence of its log, or why it could not be asked; else "" */
};
LEAT_API void leat_bpf_prog_check(const struct leat_bpf_prog *prog, struct leat_bpf_check *check);

/** An access that is tested at run time. */
struct leat_bpf_guard {
	unsigned int insn;   /* number of the instruction in the program */
	const char *region;  /* "packet", "map value" ... */
	const char *source;  /* "file.c:12: text", or NULL; valid until this thread asks again */
};
/** The @idx-th of them; false past the end. *any*. */
LEAT_API bool leat_bpf_prog_guard(const struct leat_bpf_prog *prog, unsigned int idx, struct leat_bpf_guard *guard);

/* ---- maps ---- */

struct leat_bpf_map_info {
	const char *name;
	uint32_t type;                    /* enum bpf_map_type */
	const char *type_name;            /* "hash" */
	uint32_t key_size, value_size;    /* bytes; 0 key: a ring */
	uint32_t max_entries;
	uint32_t flags;                   /* BPF_F_* of the definition */
	bool per_cpu;                     /* values are one per CPU, each rounded up to 8 bytes */
	bool internal;                    /* global data */
	bool nested;                      /* it holds maps: leat_bpf_map_set_inner() */
	uint32_t value_bytes;             /* bytes that lookup and update handle: value_size, or all CPUs' copies */
	int32_t lock;                     /* where a value has its struct bpf_spin_lock; -1: nowhere */
	uint32_t btf_key, btf_value;      /* type numbers for leat_bpf_map_format_*(); 0: unknown */
};
LEAT_API void leat_bpf_map_info(const struct leat_bpf_map *map, struct leat_bpf_map_info *info);

/** Copies the value(s) of @key to @value (info.value_bytes). Returns 0 or -ENOENT; -EOPNOTSUPP for rings. *any*. */
LEAT_API int leat_bpf_map_lookup(struct leat_bpf_map *map, const void *key, void *value);
/**
 * The same with the value's spin lock taken, so that it is as a program left it. Returns 0, -ENOENT, -EBUSY (the lock
 * stayed taken), -EINVAL (info.lock is -1). *any*.
 */
LEAT_API int leat_bpf_map_lookup_locked(struct leat_bpf_map *map, const void *key, void *value);
/**
 * Sets the value(s) of @key; @flags BPF_ANY, BPF_NOEXIST, BPF_EXIST, and BPF_F_LOCK: in place, with the value's spin
 * lock taken. Locks themselves are never copied: they read as 0. Returns 0, -E2BIG (full), -EEXIST, -ENOENT, -EINVAL,
 * -EBUSY (a lock stayed taken), -EPERM (frozen). *any*.
 *
 * The value of a DEVMAP or DEVMAP_HASH is the number of a port that exists (0 deletes the entry of a DEVMAP), and where
 * it has 8 bytes behind it leat_bpf_prog_number() of a loaded program of the same object for what leaves there, or 0. An
 * entry goes with its port.
 */
LEAT_API int leat_bpf_map_update(struct leat_bpf_map *map, const void *key, const void *value, uint64_t flags);
/** Returns 0, -ENOENT, -EINVAL (an array). *any*. */
LEAT_API int leat_bpf_map_delete(struct leat_bpf_map *map, const void *key);
/** Copies the key after @key (NULL: the first) to @next. Returns 0, or -ENOENT at the end. *any*. */
LEAT_API int leat_bpf_map_next_key(struct leat_bpf_map *map, const void *key, void *next);

/*
 * Maps of maps. A value is a map of the same object, or one that was made like the template. leat_bpf_map_update() and
 * leat_bpf_map_lookup() handle it as the map's number (leat_bpf_map_number()); deletion and keys are as for other maps.
 * What programs may still be using goes after a grace period.
 */

/** Most maps that leat_bpf_map_make_inner() makes for one object. */
#define LEAT_BPF_INNER_MAX 65536u

/** The number by which a map of maps names @map. */
LEAT_API uint32_t leat_bpf_map_number(const struct leat_bpf_map *map);
/**
 * Makes a map like those that @outer holds, with @max_entries entries (0: as many as the template; an array without
 * BPF_F_INNER_MAP can have no other number). @name is what leat_bpf_object_map_find() finds it by. It is the caller's
 * until leat_bpf_map_release(). After load. *control*. Returns 0, -EINVAL (no map of maps, not loaded, a number that
 * does not fit), -ENOSPC (LEAT_BPF_INNER_MAX), -ENOMEM, or as the type says.
 */
LEAT_API int leat_bpf_map_make_inner(struct leat_bpf_map *outer, const char *name, uint32_t max_entries,
				     struct leat_bpf_map **inner);
/**
 * Gives up a map that was made by leat_bpf_map_make_inner(): it goes when no map holds it, and with its object. Other
 * maps are left as they are. *control*.
 */
LEAT_API void leat_bpf_map_release(struct leat_bpf_map *map);
/**
 * Puts @inner into @outer. @flags as for leat_bpf_map_update(); of an array BPF_ANY. Returns 0, -EINVAL (not like the
 * template, of another object, or global data), -E2BIG, -EEXIST, -ENOENT, -ENOMEM. *any*.
 */
LEAT_API int leat_bpf_map_set_inner(struct leat_bpf_map *outer, const void *key, struct leat_bpf_map *inner,
				    uint64_t flags);
/**
 * The map at @key, or NULL. It stays as long as it is there, or is held by who made it. *control*.
 */
LEAT_API struct leat_bpf_map *leat_bpf_map_get_inner(struct leat_bpf_map *outer, const void *key);
/**
 * Puts into @outer what @text names: a map of the object, or "new" or "new:N" for one that is made like the template,
 * with N entries, and goes when it is taken out. It is called "OUTER[KEY]", which asks for such a map, too. *control*.
 * Returns as the two above and -ENOENT, with a sentence in @diag.
 */
LEAT_API int leat_bpf_map_put_inner(struct leat_bpf_map *outer, const void *key, const char *text,
				    struct leat_diag *diag);

/** Takes one record. @cpu is -1 for a ring buffer. A negative return ends the walk and is returned. */
typedef int leat_bpf_record_fn(void *arg, int cpu, const void *data, uint32_t size);
/**
 * Takes every record that is complete from a ring buffer or a perf event array. Returns how many, or a negative errno.
 * One thread at a time.
 */
LEAT_API int leat_bpf_map_consume(struct leat_bpf_map *map, leat_bpf_record_fn *fn, void *arg);
/** Records that found no room. *any*. */
LEAT_API uint64_t leat_bpf_map_lost(const struct leat_bpf_map *map);

/**
 * Writes a key or a value (one CPU's) as JSON text by its BTF type, as bytes in hexadecimal without one; a value that is
 * a map by its name, an entry of a DEVMAP as the port's number or {"port": NUMBER, "prog": "NAME"}. Returns the length it wanted, as snprintf does, or a negative errno.
 */
LEAT_API int leat_bpf_map_format_key(const struct leat_bpf_map *map, const void *key, char *buf, size_t size);
LEAT_API int leat_bpf_map_format_value(const struct leat_bpf_map *map, const void *value, char *buf, size_t size);
/**
 * The way back, from such text, plain numbers, "0x..", or IPv4, IPv6 and MAC addresses where sizes fit. In a DEVMAP of an
 * environment with ports (leat_xdp_bpf_env_create()) their names are taken, too.
 */
LEAT_API int leat_bpf_map_parse_key(const struct leat_bpf_map *map, const char *text, void *key,
				    struct leat_diag *diag);
LEAT_API int leat_bpf_map_parse_value(const struct leat_bpf_map *map, const char *text, void *value,
				      struct leat_diag *diag);
/**
 * Writes @size bytes as the struct, union or typedef @type of the object's BTF, as above: for records of rings. What
 * follows the type's own size is left out. Returns as above; -ENOENT when there is no such type or @size is too small.
 */
LEAT_API int leat_bpf_object_format(const struct leat_bpf_object *obj, const char *type, const void *bytes,
				    uint32_t size, char *buf, size_t buf_size);
/** Bytes of that type, 0 when there is none. */
LEAT_API uint32_t leat_bpf_object_type_size(const struct leat_bpf_object *obj, const char *type);

LEAT_END_DECLS

#endif
