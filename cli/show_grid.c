/* SPDX-License-Identifier: BSD-3-Clause */
/* show_grid.c: tables whose columns are as wide as they need to be. See show.h. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "show.h"

void show_grid_init(struct show_grid *grid, const char *const *heads)
{
	*grid = (struct show_grid){ .heads = heads };
	while (grid->n_cols < SHOW_GRID_COLS && heads[grid->n_cols])
		grid->n_cols++;
}

/* NULL is allowed. */
static void make_printable(char *text)
{
	size_t n;

	for (; text && *text; text += n ? n : 1) {
		n = leat_utf8_printable(text);
		if (!n)
			*text = '?';
	}
}

void show_print(const char *text)
{
	char *copy = strdup(text);

	make_printable(copy);
	fputs(copy ? copy : "", stdout);
	free(copy);
}

void show_grid_add(struct show_grid *grid, const char *text)
{
	size_t room = grid->room ? 2 * grid->room : 64;
	char **cells = grid->cells;

	if (grid->n == grid->room) {
		cells = reallocarray(cells, room, sizeof(*cells));
		if (!cells)
			return;
		grid->cells = cells;
		grid->room = room;
	}
	cells[grid->n] = strdup(text ? text : "");
	make_printable(cells[grid->n++]);
}

void show_grid_number(struct show_grid *grid, uint64_t number)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, number);
	show_grid_add(grid, text);
}

static const char *cell(const struct show_grid *grid, size_t idx)
{
	return idx < grid->n && grid->cells[idx] ? grid->cells[idx] : "";
}

static int width_of(const struct show_grid *grid, unsigned int col)
{
	size_t width = strlen(grid->heads[col]) - (*grid->heads[col] == '>'), len, i;

	for (i = col; i < grid->n; i += grid->n_cols) {
		len = strlen(cell(grid, i));
		width = len > width ? len : width;
	}
	return (int)width;
}

/* The last column is not filled up with spaces. */
static void print_cell(const struct show_grid *grid, unsigned int col, int width, const char *text)
{
	bool right = *grid->heads[col] == '>', last = col + 1 == grid->n_cols;

	printf("%*s%s", right ? width : last ? 0 : -width, text, last ? "\n" : "  ");
}

void show_grid_print(struct show_grid *grid)
{
	int width[SHOW_GRID_COLS] = { 0 };
	unsigned int col;
	size_t i;

	for (col = 0; col < grid->n_cols; col++) {
		width[col] = width_of(grid, col);
		print_cell(grid, col, width[col], grid->heads[col] + (*grid->heads[col] == '>'));
	}
	for (i = 0, col = 0; i < grid->n; i++, col = col + 1 == grid->n_cols ? 0 : col + 1) {
		print_cell(grid, col, width[col], cell(grid, i));
		free(grid->cells[i]);
	}
	free(grid->cells);
}
