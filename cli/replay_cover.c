/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * replay_cover.c: --coverage: which instructions and source lines ran, and which ways conditional jumps went. For
 * people, as JSON, and as a tracefile of lcov.
 *
 * A line has the instructions of every place at which the compiler put code of it. Its count is that of the instruction
 * that ran most often, in each program, and their sum over programs: one line is often cut into pieces that all run
 * once. The source is read from where the compiler found it, if what the object says of its lines is what stands there;
 * else only these lines are shown.
 */
#include "replay.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json_out.h"

#define SOURCE_MAX (16 << 20)

struct insn {
	struct leat_bpf_cover cover;
	unsigned int prog, number;
	unsigned int block; /* for lcov: no other instruction of the object has the same */
};

/* A line of the source, with @n instructions of the table from @insn on. */
struct line {
	struct insn *insn;
	size_t n;
	uint64_t hits;
	unsigned int ways, gone; /* of conditional jumps: two of each; those that were gone */
};

struct sum {
	uint64_t all, reached;
};

struct cover {
	struct replay *r;
	FILE *out;
	struct insn *insn; /* of loaded programs, by file, line, program, number; without a line first */
	size_t n_insns;
	struct line *line;
	size_t n_lines;
	struct sum lines, insns, ways;
};

/* ---- gathering ---- */

static int by_place(const void *a, const void *b)
{
	const struct insn *one = a, *other = b;
	int files;

	if (!one->cover.file || !other->cover.file)
		files = (one->cover.file != NULL) - (other->cover.file != NULL);
	else
		files = strcmp(one->cover.file, other->cover.file);
	if (files)
		return files;
	if (one->cover.line != other->cover.line)
		return one->cover.line < other->cover.line ? -1 : 1;
	return one->block < other->block ? -1 : 1;
}

static bool same_line(const struct insn *one, const struct insn *other)
{
	return one->cover.line == other->cover.line && !strcmp(one->cover.file, other->cover.file);
}

static size_t count_insns(const struct replay *r)
{
	struct leat_bpf_prog *prog;
	size_t n = 0;
	unsigned int i;

	for (i = 0; (prog = leat_bpf_object_prog_get(r->obj, i)); i++)
		n += leat_bpf_prog_len(prog);
	return n;
}

static void gather_insns(struct cover *c)
{
	struct leat_bpf_prog *prog;
	unsigned int i, base = 0;
	struct insn *insn;

	for (i = 0; (prog = leat_bpf_object_prog_get(c->r->obj, i)); base += leat_bpf_prog_len(prog), i++) {
		insn = &c->insn[c->n_insns];
		*insn = (struct insn){ .prog = i, .block = base };
		while (leat_bpf_prog_cover(prog, insn->number, &insn->cover)) {
			insn[1] = (struct insn){ .prog = i, .number = insn->number + insn->cover.slots };
			insn[1].block = base + insn[1].number;
			insn++;
		}
		c->n_insns = (size_t)(insn - c->insn);
	}
	if (c->n_insns)
		qsort(c->insn, c->n_insns, sizeof(*c->insn), by_place);
}

/* Adds the instructions of one line up. */
static void sum_line(struct line *line)
{
	uint64_t most = 0;
	size_t i;

	for (i = 0; i < line->n; i++) {
		if (i && line->insn[i].prog != line->insn[i - 1].prog) {
			line->hits += most;
			most = 0;
		}
		if (line->insn[i].cover.hits > most)
			most = line->insn[i].cover.hits;
		if (!line->insn[i].cover.jump)
			continue;
		line->ways += 2;
		line->gone += (line->insn[i].cover.taken != 0) + (line->insn[i].cover.fell != 0);
	}
	line->hits += most;
}

static void gather_lines(struct cover *c)
{
	struct line *line = NULL;
	size_t i;

	for (i = 0; i < c->n_insns; i++) {
		if (!c->insn[i].cover.file)
			continue;
		if (!line || !same_line(line->insn, &c->insn[i])) {
			line = &c->line[c->n_lines++];
			line->insn = &c->insn[i];
		}
		line->n++;
	}
	for (i = 0; i < c->n_lines; i++) {
		sum_line(&c->line[i]);
		c->lines.reached += c->line[i].hits != 0;
	}
	c->lines.all = c->n_lines;
}

static void sum_insns(struct cover *c)
{
	const struct leat_bpf_cover *cover;
	size_t i;

	for (i = 0; i < c->n_insns; i++) {
		cover = &c->insn[i].cover;
		c->insns.all++;
		c->insns.reached += cover->hits != 0;
		c->ways.all += cover->jump ? 2 : 0;
		c->ways.reached += (cover->taken != 0) + (cover->fell != 0);
	}
}

static int cover_init(struct cover *c)
{
	size_t n = count_insns(c->r) + 1; /* one more, which gather_insns() begins */

	c->insn = calloc(n, sizeof(*c->insn));
	c->line = calloc(n, sizeof(*c->line));
	if (!c->insn || !c->line)
		return -ENOMEM;
	gather_insns(c);
	gather_lines(c);
	sum_insns(c);
	return 0;
}

static void cover_fini(struct cover *c)
{
	free(c->insn);
	free(c->line);
}

/* How many lines from @from on are of the same file. */
static size_t lines_of_file(const struct cover *c, size_t from)
{
	size_t i = from + 1;

	while (i < c->n_lines && !strcmp(c->line[i].insn->cover.file, c->line[from].insn->cover.file))
		i++;
	return i - from;
}

/* ---- the source ---- */

struct source {
	char *text; /* cut into lines */
	char **line;
	unsigned int n;
};

static char *read_file(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;
	char *text = NULL;
	ssize_t len = -1;

	if (fd < 0)
		return NULL;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size <= SOURCE_MAX)
		text = malloc((size_t)st.st_size + 1);
	if (text)
		len = read(fd, text, (size_t)st.st_size);
	close(fd);
	if (text && len >= 0)
		text[len] = '\0';
	if (!text || len < 0 || strlen(text) != (size_t)len) {
		free(text);
		return NULL;
	}
	return text;
}

static bool cut_lines(struct source *source)
{
	char *next = source->text, *text;
	unsigned int n = 1;

	for (text = next; *text; text++)
		n += *text == '\n';
	source->line = calloc(n, sizeof(*source->line));
	if (!source->line)
		return false;
	while ((text = strsep(&next, "\n"))) {
		text[strcspn(text, "\r")] = '\0';
		if (next || *text)
			source->line[source->n++] = text;
	}
	return true;
}

/* Whether the object was made from this text. */
static bool is_source_of(const struct source *source, const struct line *line, size_t n)
{
	const struct leat_bpf_cover *cover;
	const char *is;
	size_t i, len;

	for (i = 0; i < n; i++) {
		cover = &line[i].insn->cover;
		if (cover->line > source->n)
			return false;
		is = source->line[cover->line - 1];
		len = strcspn(cover->source, "\r\n");
		if (len && (strlen(is) != len || strncmp(is, cover->source, len) != 0))
			return false;
	}
	return true;
}

static void source_fini(struct source *source)
{
	free(source->text);
	free(source->line);
	*source = (struct source){ .n = 0 };
}

/* Without the source it has no lines. */
static void source_init(struct source *source, const struct line *line, size_t n)
{
	*source = (struct source){ .text = read_file(line->insn->cover.file) };
	if (!source->text || !cut_lines(source) || !is_source_of(source, line, n))
		source_fini(source);
}

/* ---- for people ---- */

static void print_text(FILE *out, const char *text)
{
	for (; *text && *text != '\n' && *text != '\r'; text++)
		fputc((unsigned char)*text < 0x20 && *text != '\t' ? '?' : *text, out);
	fputc('\n', out);
}

static const char *hits_text(char buf[24], uint64_t hits)
{
	if (!hits)
		return "#####";
	snprintf(buf, 24, "%" PRIu64, hits);
	return buf;
}

/* @line is NULL for one without code. */
static void print_line(FILE *out, const struct line *line, unsigned int number, const char *text)
{
	char hits[24], ways[32] = "";

	if (line && line->ways)
		snprintf(ways, sizeof(ways), "%u/%u", line->gone, line->ways);
	fprintf(out, "%10s %7s %6u  ", line ? hits_text(hits, line->hits) : "", ways, number);
	print_text(out, text);
}

static void print_file(const struct cover *c, const struct line *line, size_t n)
{
	struct source source;
	unsigned int i, done = 0;

	source_init(&source, line, n);
	fputs("coverage of ", c->out);
	print_text(c->out, line->insn->cover.file);
	fprintf(c->out, "%10s %7s %6s\n", "times", "ways", "line");
	for (i = 0; i < source.n; i++) {
		bool code = done < n && line[done].insn->cover.line == i + 1;

		print_line(c->out, code ? &line[done] : NULL, i + 1, source.line[i]);
		done += code;
	}
	for (; done < n; done++)
		print_line(c->out, &line[done], line[done].insn->cover.line, line[done].insn->cover.source);
	source_fini(&source);
}

static void print_insn(FILE *out, const struct leat_bpf_cover *cover, unsigned int number)
{
	char hits[24];

	fprintf(out, "%10s %6u  %s", cover->reachable ? hits_text(hits, cover->hits) : "no path", number, cover->text);
	if (cover->jump && cover->hits)
		fprintf(out, "  [jumped %" PRIu64 ", went on %" PRIu64 "]", cover->taken, cover->fell);
	fputc('\n', out);
}

/* What stands above the instructions of a line. */
static void print_head(FILE *out, const struct leat_bpf_cover *cover, const struct leat_bpf_cover *last)
{
	if (!cover->file && last->file)
		fprintf(out, "%10s %6s  ; of no line\n", "", "");
	if (!cover->file || (last->file && cover->line == last->line && !strcmp(cover->file, last->file)))
		return;
	fprintf(out, "%10s %6s  ; %u: ", "", "", cover->line);
	print_text(out, cover->source + strspn(cover->source, " \t"));
}

static void print_program(FILE *out, const struct leat_bpf_prog *prog)
{
	struct leat_bpf_cover cover, last = { .file = NULL };
	unsigned int i;

	for (i = 0; leat_bpf_prog_cover(prog, i, &cover); i += cover.slots) {
		if (!i)
			fprintf(out, "coverage of program %s\n%10s %6s\n", leat_bpf_prog_name(prog), "times", "insn");
		print_head(out, &cover, &last);
		print_insn(out, &cover, i);
		last = cover;
	}
}

static void print_sum(FILE *out, const char *what, const struct sum *sum)
{
	char share[UNIT_SIZE];

	fprintf(out, "  %-12s %6" PRIu64 " of %6" PRIu64 "  %7s\n", what, sum->reached, sum->all,
		format_share(share, (double)sum->reached, (double)sum->all));
}

static void print_cover(const struct cover *c)
{
	const struct replay_opts *opts = c->r->opts;
	struct leat_bpf_prog *prog;
	unsigned int p;
	size_t i, n;

	for (i = 0; i < c->n_lines && opts->cover & REPLAY_COVER_LINES; i += n) {
		n = lines_of_file(c, i);
		print_file(c, &c->line[i], n);
	}
	for (p = 0; opts->cover & REPLAY_COVER_INSNS && (prog = leat_bpf_object_prog_get(c->r->obj, p)); p++)
		print_program(c->out, prog);
	fputs("coverage:\n", c->out);
	if (c->n_lines)
		print_sum(c->out, "lines", &c->lines);
	else
		fputs("  the object has no line information (it comes by compiling with -g)\n", c->out);
	print_sum(c->out, "instructions", &c->insns);
	print_sum(c->out, "branches", &c->ways);
}

/* ---- as JSON ---- */

static void json_sum(struct leat_json_out *j, const char *what, const struct sum *sum)
{
	leat_json_open_flat(j, what, '{');
	leat_json_number(j, "total", sum->all);
	leat_json_number(j, "reached", sum->reached);
	leat_json_close(j, '}');
}

static void json_file(struct leat_json_out *j, const struct line *line, size_t n)
{
	size_t i;

	leat_json_open(j, NULL, '{');
	leat_json_string(j, "file", line->insn->cover.file);
	leat_json_open(j, "lines", '[');
	for (i = 0; i < n; i++) {
		leat_json_open_flat(j, NULL, '{');
		leat_json_number(j, "line", line[i].insn->cover.line);
		leat_json_number(j, "times", line[i].hits);
		leat_json_number(j, "branches", line[i].ways);
		leat_json_number(j, "branches_reached", line[i].gone);
		leat_json_close(j, '}');
	}
	leat_json_close(j, ']');
	leat_json_close(j, '}');
}

static void json_insn(struct leat_json_out *j, const struct leat_bpf_cover *cover, unsigned int number)
{
	leat_json_open_flat(j, NULL, '{');
	leat_json_number(j, "instruction", number);
	leat_json_string(j, "text", cover->text);
	if (cover->file)
		leat_json_number(j, "line", cover->line);
	leat_json_number(j, "times", cover->hits);
	if (cover->jump) {
		leat_json_number(j, "jumped", cover->taken);
		leat_json_number(j, "went_on", cover->fell);
	}
	if (!cover->reachable)
		leat_json_raw(j, "no_path", "true");
	leat_json_close(j, '}');
}

static void json_program(struct leat_json_out *j, const struct leat_bpf_prog *prog)
{
	struct leat_bpf_cover cover;
	unsigned int i;

	if (!leat_bpf_prog_cover(prog, 0, &cover))
		return;
	leat_json_open(j, NULL, '{');
	leat_json_string(j, "program", leat_bpf_prog_name(prog));
	leat_json_open(j, "instructions", '[');
	for (i = 0; leat_bpf_prog_cover(prog, i, &cover); i += cover.slots)
		json_insn(j, &cover, i);
	leat_json_close(j, ']');
	leat_json_close(j, '}');
}

static void json_cover(const struct cover *c, struct leat_json_out *j)
{
	struct leat_bpf_prog *prog;
	unsigned int p;
	size_t i, n;

	leat_json_open(j, "coverage", '{');
	json_sum(j, "lines", &c->lines);
	json_sum(j, "instructions", &c->insns);
	json_sum(j, "branches", &c->ways);
	leat_json_open(j, "files", '[');
	for (i = 0; i < c->n_lines; i += n) {
		n = lines_of_file(c, i);
		json_file(j, &c->line[i], n);
	}
	leat_json_close(j, ']');
	if (c->r->opts->cover & REPLAY_COVER_INSNS) {
		leat_json_open(j, "programs", '[');
		for (p = 0; (prog = leat_bpf_object_prog_get(c->r->obj, p)); p++)
			json_program(j, prog);
		leat_json_close(j, ']');
	}
	leat_json_close(j, '}');
}

/* ---- for lcov: geninfo(1), "tracefile" ---- */

static void lcov_way(FILE *out, const struct insn *insn, unsigned int branch, uint64_t hits)
{
	fprintf(out, "BRDA:%u,%u,%u,", insn->cover.line, insn->block, branch);
	if (insn->cover.hits)
		fprintf(out, "%" PRIu64 "\n", hits);
	else
		fputs("-\n", out);
}

static void lcov_file(FILE *out, const struct line *line, size_t n)
{
	unsigned int ways = 0, gone = 0, hit = 0;
	const struct insn *insn;
	size_t i;

	fputs("TN:\nSF:", out);
	print_text(out, line->insn->cover.file);
	for (i = 0; i < n; i++) {
		for (insn = line[i].insn; insn < line[i].insn + line[i].n; insn++) {
			if (!insn->cover.jump)
				continue;
			lcov_way(out, insn, 0, insn->cover.taken);
			lcov_way(out, insn, 1, insn->cover.fell);
		}
		ways += line[i].ways;
		gone += line[i].gone;
	}
	fprintf(out, "BRF:%u\nBRH:%u\n", ways, gone);
	for (i = 0; i < n; i++) {
		fprintf(out, "DA:%u,%" PRIu64 "\n", line[i].insn->cover.line, line[i].hits);
		hit += line[i].hits != 0;
	}
	fprintf(out, "LF:%zu\nLH:%u\nend_of_record\n", n, hit);
}

static int write_lcov(const struct cover *c)
{
	const char *path = c->r->opts->lcov;
	FILE *out = fopen(path, "we");
	bool good = out;
	size_t i, n;

	for (i = 0; out && i < c->n_lines; i += n) {
		n = lines_of_file(c, i);
		lcov_file(out, &c->line[i], n);
	}
	if (out) {
		good = !ferror(out);
		good = !fclose(out) && good;
	}
	if (!good)
		fprintf(stderr, "%s: cannot be written: %s\n", path, strerror(errno));
	return good ? EXIT_GOOD : EXIT_CONFIG;
}

int replay_cover_tell(struct replay *r, FILE *out, struct leat_json_out *j)
{
	struct cover c = { .r = r, .out = out };
	int code = EXIT_GOOD;

	if (!r->opts->cover)
		return EXIT_GOOD;
	if (cover_init(&c)) {
		fputs("leat replay: out of memory\n", stderr);
		code = EXIT_CONFIG;
	} else {
		if (j)
			json_cover(&c, j);
		else
			print_cover(&c);
		if (r->opts->lcov)
			code = write_lcov(&c);
	}
	cover_fini(&c);
	return code;
}
