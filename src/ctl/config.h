/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * config.h: a checked configuration: what the file asks for, and where in it each thing stands.
 *
 * Names are resolved to indices and options are filled structs; nothing is made yet. Objects stand in the order of
 * the file.
 */
#ifndef LEAT_CTL_CONFIG_H
#define LEAT_CTL_CONFIG_H

#include <leat/bridge.h>
#include <leat/driver.h>
#include <leat/fib.h>
#include <leat/xdp_prog.h>

#include "ctl/yaml_tree.h"

/** Longest name of a port, program or bridge, with its end. */
#define LEAT_CONFIG_NAME_SIZE LEAT_PORT_NAME_MAX

struct leat_config_port {
	char name[LEAT_CONFIG_NAME_SIZE];
	struct leat_yaml_pos pos;
	const struct leat_driver *driver;
	void *opts; /* of driver->opts_size */
};

/** Where a program of an object file says what the object is to be like. */
struct leat_config_tuning {
	struct leat_yaml_pos pos;
	const struct leat_yaml_node *set;     /* NAME: value of a global variable; or NULL */
	const struct leat_yaml_node *maps;    /* NAME: { key: value } initial elements; or NULL */
	const struct leat_yaml_node *entries; /* NAME: number of entries; or NULL */
};

/** One object file, loaded once for all programs that name it (and the same instance). */
struct leat_config_object {
	const char *path;     /* as in the file */
	const char *instance; /* or NULL */
	const char *prog;     /* name of the first program that names it */
	struct leat_yaml_pos pos;
};

#define LEAT_CONFIG_NO_OBJECT UINT32_MAX

/** A program: a built-in, or one of an object. */
struct leat_config_prog {
	char name[LEAT_CONFIG_NAME_SIZE];
	struct leat_yaml_pos pos;
	const struct leat_xdp_builtin *builtin; /* NULL: of an object */
	void *priv;                   /* of builtin->priv_size; the running program uses it */
	uint32_t object;              /* index, or LEAT_CONFIG_NO_OBJECT */
	const char *prog;             /* its name in the object; NULL: the only one */
	struct leat_config_tuning tuning;
	uint32_t run_prio;            /* 0: what the program itself says */
	uint32_t chain_actions;       /* 0: what the program itself says */
};

/** The programs of one port. */
struct leat_config_attach {
	struct leat_yaml_pos pos;
	unsigned int port;                     /* index */
	unsigned int n_progs;
	unsigned int prog[LEAT_XDP_CHAIN_MAX]; /* indices */
};

struct leat_config_bridge {
	char name[LEAT_CONFIG_NAME_SIZE];
	struct leat_yaml_pos pos;
	uint64_t ageing_ns;
	uint32_t entries;
	unsigned int n_ports;
	unsigned int ports[LEAT_BRIDGE_PORTS_MAX]; /* indices */
};

/** A port in the forwarding table. Numbers of ports are theirs in the datapath: index plus 1. */
struct leat_config_fib_port {
	struct leat_yaml_pos pos;
	uint32_t port;
	uint32_t mtu;      /* 0: the port's */
	bool forwarding;
	uint8_t mac[6];    /* all zero: one by its number */
	unsigned int n_addresses;
	struct leat_fib_address *addresses;
};

struct leat_config_fib_route {
	struct leat_yaml_pos pos;
	struct leat_fib_route route;
};

struct leat_config_fib_neighbour {
	struct leat_yaml_pos pos;
	struct leat_fib_neighbour neighbour;
};

/** The forwarding table: its content, or where it is mirrored from. */
struct leat_config_fib {
	bool given;
	bool mirror;
	struct leat_yaml_pos pos;
	const char *netns; /* mirror; NULL: this one */
	unsigned int n_mirror_ports, n_ports, n_routes, n_neighbours;
	struct leat_fib_mirror_port *mirror_ports;
	struct leat_config_fib_port *ports;
	struct leat_config_fib_route *routes;
	struct leat_config_fib_neighbour *neighbours;
};

/** Who may ask if the configuration does not say: the owner. */
#define LEAT_CONTROL_MODE 0600u

/** The control socket. */
struct leat_config_control {
	bool given;
	bool off;
	struct leat_yaml_pos pos;
	char *path;         /* NULL: leat_control_default_path() */
	char *owner, *group; /* names or numbers; NULL: the process's own */
	char *mode_text;
	uint32_t mode;      /* bits of permission */
};

struct leat_config {
	char *file; /* name for messages */
	uint32_t workers;
	uint32_t bpf_engine; /* enum leat_bpf_engine */
	uint32_t kernel_verifier; /* enum leat_bpf_kernel_verifier */
	bool perf_map;
	struct leat_yaml_tree *tree; /* what paths, names and tunings point into */
	unsigned int n_ports, n_objects, n_progs, n_attach, n_bridges;
	struct leat_config_port *ports;
	struct leat_config_object *objects;
	struct leat_config_prog *progs;
	struct leat_config_attach *attach;
	struct leat_config_bridge *bridges;
	struct leat_config_fib fib;
	struct leat_config_control control;
};

/**
 * Checks the document of @len bytes at @text; every mistake goes to @diag in the order of lines. @file stands for it
 * in messages. *control*. Returns 0; -EINVAL with mistakes in @diag, which must be given; -ENOMEM.
 */
int leat_config_parse(const char *text, size_t len, const char *file, struct leat_diag *diag,
		      struct leat_config **config);
/** NULL is allowed. Nothing made from the configuration may be in use any more. */
void leat_config_free(struct leat_config *config);

/** Frees what config_progs.c, config_control.c and config_fib.c have made. */
void leat_config_free_progs(struct leat_config *config);
void leat_config_free_control(struct leat_config *config);
void leat_config_free_fib(struct leat_config *config);

#endif
