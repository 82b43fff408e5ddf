/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * config_control.c: checks the section "control" of a configuration: where the control socket stands, and who may ask.
 * Whether the path can be had, and whether owner and group exist, is seen when it is opened. Control thread.
 */
#include "ctl/config_check.h"

#include <string.h>
#include <sys/un.h>

#define PATH_LEN_MAX (sizeof(((struct sockaddr_un *)0)->sun_path) - 1)

static const struct leat_param params[] = {
	{ .name = "path", .kind = LEAT_PARAM_STRING, .offset = offsetof(struct leat_config_control, path), .min = 1,
	  .max = PATH_LEN_MAX, .help = "where the socket stands" },
	{ .name = "owner", .kind = LEAT_PARAM_STRING, .offset = offsetof(struct leat_config_control, owner), .min = 1,
	  .max = 64, .help = "name or number of the user whose socket it is" },
	{ .name = "group", .kind = LEAT_PARAM_STRING, .offset = offsetof(struct leat_config_control, group), .min = 1,
	  .max = 64, .help = "name or number of its group" },
	{ .name = "mode", .kind = LEAT_PARAM_STRING, .offset = offsetof(struct leat_config_control, mode_text),
	  .min = 1, .max = 8, .help = "who may ask, in octal" },
	{ .name = NULL },
};

/** Reads octal bits of permission. */
static bool read_mode(const char *text, uint32_t *mode)
{
	uint32_t bits = 0;

	for (; *text >= '0' && *text <= '7'; text++)
		bits = bits * 8 + (uint32_t)(*text - '0');
	if (*text || bits > 0777)
		return false;
	*mode = bits;
	return true;
}

static void check_mode(struct leat_check *c, const struct leat_yaml_node *node)
{
	struct leat_config_control *control = &c->config->control;

	if (!control->mode_text || read_mode(control->mode_text, &control->mode))
		return;
	leat_check_at(c, leat_yaml_get(node, "mode")->pos, "control", NULL, "mode");
	leat_diag_add(c->diag, "'%.40s' is no mode: three octal digits, like 660", control->mode_text);
}

void leat_check_control(struct leat_check *c, const struct leat_yaml_node *node)
{
	static const char *const own[] = { NULL };
	struct leat_config_control *control = &c->config->control;

	control->given = true;
	control->pos = node->key_pos;
	if (node->kind == LEAT_YAML_MAP) {
		leat_check_fill(c, NULL, node, own, params, control);
		check_mode(c, node);
	} else if (node->kind == LEAT_YAML_SCALAR && !strcmp(node->text, "off")) {
		control->off = true;
	} else {
		leat_check_at(c, leat_check_pos(node), "control", NULL, NULL);
		leat_diag_add(c->diag, "must be 'off', or a mapping, like { path: /run/leat/a.sock, mode: 660 }");
	}
}

void leat_config_free_control(struct leat_config *config)
{
	leat_param_free(params, &config->control);
}
