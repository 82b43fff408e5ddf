/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * replay_expect.c: --expect: the verdicts that a file says packets should get.
 *
 *	# a comment                     7: drop
 *	10-20: drop                     21: redirect to ports[2]
 *	*: pass                         total drop 12
 *
 * Or what `leat replay --verdicts` printed, as a whole (it begins with "program"; then only the lines of packets, and how
 * many there are, matter) or lines of it. A packet that is named alone goes before a range that it lies in, and * is for
 * the rest. Packets are compared in the order in which they come, so one look at the next entry is enough.
 */
#include "replay.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define NUMBER_MAX (UINT64_MAX >> 1)
#define MISTAKES_MAX 20u
#define TOTALS (LEAT_XDP_ACTIONS + 2) /* of each verdict, of unknown ones, and of all packets */
#define TOTAL_UNKNOWN LEAT_XDP_ACTIONS
#define TOTAL_PACKETS (LEAT_XDP_ACTIONS + 1)

/* What packets first..last should get; first moves on as they come. */
struct entry {
	uint64_t first, last;
	const char *text; /* "redirect to ports[2]": in the file's text */
	unsigned int line;
};

struct entries {
	struct entry *at;
	size_t n, room;
};

struct expect {
	char *text; /* of the file, cut into lines */
	bool report; /* it is what replay printed */
	struct entries single, range; /* as they stand in the file */
	struct entries all; /* in order, none twice */
	size_t next; /* of all: the first that is not behind us */
	struct entry rest; /* text is NULL: not said */
	struct {
		uint64_t n;
		unsigned int line; /* 0: not said */
	} total[TOTALS];
	uint64_t compared, differences;
};

static const char *total_name(unsigned int i)
{
	return i == TOTAL_PACKETS ? "packets" : replay_verdict_name(i);
}

static int add(struct entries *entries, const struct entry *entry)
{
	size_t room = entries->room ? 2 * entries->room : 64;
	struct entry *at;

	if (entries->n == entries->room) {
		at = realloc(entries->at, room * sizeof(*at));
		if (!at)
			return -ENOMEM;
		entries->at = at;
		entries->room = room;
	}
	entries->at[entries->n++] = *entry;
	return 0;
}

/* ---- one line ---- */

/* What is read; text moves on. */
struct line {
	const struct replay *r;
	struct expect *expect;
	char *text;
	unsigned int number;
};

static int mistake(const struct line *line, const char *sentence)
{
	leat_diag_at(line->r->diag, line->r->opts->expect, line->number, 0, NULL);
	leat_diag_add(line->r->diag, "%s", sentence);
	return -EINVAL;
}

static bool take_word(struct line *line, const char *word)
{
	size_t len = strlen(word);

	if (strncmp(line->text, word, len) != 0)
		return false;
	line->text += len;
	return true;
}

static bool take_number(struct line *line, uint64_t *number)
{
	char *end;

	if (!isdigit((unsigned char)*line->text))
		return false;
	errno = 0;
	*number = strtoull(line->text, &end, 10);
	line->text = end;
	return !errno && *number <= NUMBER_MAX;
}

static void take_spaces(struct line *line)
{
	line->text += strspn(line->text, " \t");
}

/* Whether it is a verdict, with the place that a packet is redirected to or without. */
static bool is_verdict(const char *text)
{
	unsigned int i;

	for (i = 0; i <= TOTAL_UNKNOWN; i++)
		if (!strcmp(text, total_name(i)))
			return true;
	return !strncmp(text, "redirect to ", 12) && text[12];
}

static int take_verdict(struct line *line, struct entry *entry)
{
	take_spaces(line);
	if (!is_verdict(line->text))
		return mistake(line, "a verdict is aborted, drop, pass, tx, redirect, redirect to .., or unknown");
	entry->text = line->text;
	entry->line = line->number;
	return 0;
}

/* "packet 2: 1700000001.000001000, 52 bytes: drop", after its first word. False: it is another line of a report. */
static bool take_printed(struct line *line, struct entry *entry)
{
	uint64_t unused;

	return take_number(line, &entry->first) && take_word(line, ": ") && take_number(line, &unused) &&
	       take_word(line, ".") && take_number(line, &unused) && take_word(line, ", ") &&
	       take_number(line, &unused) && take_word(line, " bytes:");
}

static int parse_total(struct line *line)
{
	uint64_t n;
	unsigned int i;

	take_spaces(line);
	for (i = 0; i < TOTALS; i++)
		if (take_word(line, total_name(i)))
			break;
	take_spaces(line);
	if (i == TOTALS || !take_number(line, &n) || *line->text)
		return mistake(line, "a total is: total VERDICT NUMBER, or: total packets NUMBER");
	if (line->expect->total[i].line && line->expect->total[i].n != n)
		return mistake(line, "another number than said before");
	line->expect->total[i].n = n;
	line->expect->total[i].line = line->number;
	return 0;
}

static int parse_rest(struct line *line)
{
	struct entry entry;
	int err;

	if (!take_word(line, ":"))
		return mistake(line, "after * comes a colon");
	err = take_verdict(line, &entry);
	if (err)
		return err;
	if (line->expect->rest.text && strcmp(line->expect->rest.text, entry.text) != 0)
		return mistake(line, "another verdict for * than said before");
	line->expect->rest = entry;
	return 0;
}

static int add_entry(struct line *line, struct entry *entry)
{
	int err;

	if (!entry->first || entry->first > entry->last)
		return mistake(line, "packets are numbered from 1 on, and a range goes upwards");
	err = take_verdict(line, entry);
	return err ? err : add(entry->first == entry->last ? &line->expect->single : &line->expect->range, entry);
}

/* A line of a file that somebody has written. */
static int parse_line(struct line *line)
{
	struct entry entry;

	if (take_word(line, "total"))
		return parse_total(line);
	if (take_word(line, "*"))
		return parse_rest(line);
	if (take_word(line, "packet ")) {
		if (!take_printed(line, &entry))
			return mistake(line, "no such line is printed by leat replay --verdicts");
		entry.last = entry.first;
		return add_entry(line, &entry);
	}
	if (!take_number(line, &entry.first))
		return mistake(line, "must be NUMBER: VERDICT, FROM-TO: VERDICT, *: VERDICT or total VERDICT NUMBER");
	entry.last = entry.first;
	if (take_word(line, "-") && !take_number(line, &entry.last))
		return mistake(line, "after the - comes a number");
	if (!take_word(line, ":"))
		return mistake(line, "after the number comes a colon");
	return add_entry(line, &entry);
}

/* A line of a report: most do not matter. */
static int parse_report(struct line *line)
{
	struct expect *expect = line->expect;
	struct entry entry;

	if (take_word(line, "packets: ") && take_number(line, &expect->total[TOTAL_PACKETS].n))
		expect->total[TOTAL_PACKETS].line = line->number;
	if (!take_word(line, "packet ") || !take_printed(line, &entry))
		return 0;
	entry.last = entry.first;
	return add_entry(line, &entry);
}

/* ---- the file ---- */

/* Reads it as one string, up to a zero byte or the end. */
static int read_text(struct replay *r)
{
	const char *path = r->opts->expect;
	FILE *file = fopen(path, "re");
	size_t size = 0;
	ssize_t len = file ? getdelim(&r->expect->text, &size, '\0', file) : -1;
	int err = !file || ferror(file) ? -errno : 0;

	leat_diag_at(r->diag, path, 0, 0, NULL);
	if (len < 0) { /* what is there then is no string */
		free(r->expect->text);
		r->expect->text = NULL;
	}
	if (err) {
		leat_diag_add(r->diag, "%s", strerror(-err));
	} else if (len > 0 && !r->expect->text[len - 1]) {
		leat_diag_add(r->diag, "is no text");
		err = -EINVAL;
	}
	if (file)
		fclose(file);
	return err;
}

/* Without a comment, and the blanks at its ends. */
static char *trim(char *text)
{
	size_t len;

	text += strspn(text, " \t\r");
	text[strcspn(text, "#")] = '\0';
	for (len = strlen(text); len && strchr(" \t\r", text[len - 1]); len--)
		text[len - 1] = '\0';
	return text;
}

static int parse_text(struct replay *r)
{
	struct expect *expect = r->expect;
	struct line line = { .r = r, .expect = expect };
	char *next = expect->text, *text;
	unsigned int mistakes = 0;
	bool first = true;
	int err;

	while (next && (text = strsep(&next, "\n")) && mistakes < MISTAKES_MAX) {
		line.number++;
		line.text = trim(text);
		if (!*line.text)
			continue;
		if (first)
			expect->report = !strncmp(line.text, "program ", 8);
		first = false;
		err = expect->report ? parse_report(&line) : parse_line(&line);
		if (err == -ENOMEM)
			return err;
		mistakes += err != 0;
	}
	return mistakes ? -EINVAL : 0;
}

/* ---- in order ---- */

static int by_number(const void *a, const void *b)
{
	const struct entry *one = a, *other = b;

	if (one->first != other->first)
		return one->first < other->first ? -1 : 1;
	return one->line < other->line ? -1 : one->line > other->line;
}

/* Sorts them and takes out what is said twice; what is said in two ways is a mistake. */
static int sort(struct replay *r, struct entries *entries)
{
	struct entry *at = entries->at, *last;
	size_t i, n = 0;
	int err = 0;

	if (entries->n)
		qsort(at, entries->n, sizeof(*at), by_number);
	for (i = 0; i < entries->n; i++) {
		last = n ? &at[n - 1] : NULL;
		if (last && at[i].first <= last->last && strcmp(at[i].text, last->text) != 0 && !err) {
			leat_diag_at(r->diag, r->opts->expect, at[i].line, 0, NULL);
			leat_diag_add(r->diag, "packet %" PRIu64 ": another verdict than in line %u", at[i].first,
				      last->line);
			err = -EINVAL;
		}
		if (last && at[i].first <= last->last)
			at[i].first = last->last + 1;
		if (at[i].first <= at[i].last)
			at[n++] = at[i];
	}
	entries->n = n;
	return err;
}

/* Puts both together: a range has holes where packets are named alone. */
static int merge(struct expect *expect)
{
	const struct entry *single = expect->single.at, *end = single ? single + expect->single.n : NULL;
	struct entry range;
	size_t i;
	int err = 0;

	for (i = 0; i < expect->range.n && !err; i++) {
		range = expect->range.at[i];
		for (; single != end && single->first <= range.last && !err; single++) {
			struct entry before = range;

			before.last = single->first - 1;
			if (range.first <= single->first) {
				err = range.first < single->first ? add(&expect->all, &before) : 0;
				range.first = single->first + 1;
			}
			err = err ? err : add(&expect->all, single);
		}
		if (range.first <= range.last && !err)
			err = add(&expect->all, &range);
	}
	for (; single != end && !err; single++)
		err = add(&expect->all, single);
	return err;
}

int replay_expect_read(struct replay *r)
{
	int err, other;

	if (!r->opts->expect)
		return 0;
	r->expect = calloc(1, sizeof(*r->expect));
	if (!r->expect)
		return -ENOMEM;
	err = read_text(r);
	if (!err)
		err = parse_text(r);
	if (err)
		return err;
	err = sort(r, &r->expect->single);
	other = sort(r, &r->expect->range);
	if (!err)
		err = other;
	return err ? err : merge(r->expect);
}

void replay_expect_free(struct expect *expect)
{
	if (!expect)
		return;
	free(expect->text);
	free(expect->single.at);
	free(expect->range.at);
	free(expect->all.at);
	free(expect);
}

/* ---- comparing ---- */

/* "redirect" alone is any redirect, and where it goes may be said without the port. */
static bool is_as(const char *text, const char *got)
{
	size_t len = strlen(text);

	return !strncmp(got, text, len) &&
	       (!got[len] || got[len] == ',' || (got[len] == ' ' && !strcmp(text, "redirect")));
}

/* Packets of @entry before @number did not come. */
static void tell_missing(struct replay *r, const struct entry *entry, uint64_t number)
{
	if (entry->first >= number)
		return;
	r->expect->differences++;
	report_difference(r, entry->first, number - 1, entry->text, NULL);
}

void replay_expect_packet(struct replay *r, uint32_t verdict)
{
	const uint64_t number = r->packet.number;
	struct expect *expect = r->expect;
	const struct entry *rule = &expect->rest;
	char got[REPLAY_VERDICT_SIZE];
	struct entry *entry;

	for (; expect->next < expect->all.n && expect->all.at[expect->next].last < number; expect->next++)
		tell_missing(r, &expect->all.at[expect->next], expect->all.at[expect->next].last + 1);
	entry = expect->next < expect->all.n ? &expect->all.at[expect->next] : NULL;
	if (entry && entry->first <= number) {
		tell_missing(r, entry, number);
		entry->first = number + 1;
		rule = entry;
	}
	if (!rule->text)
		return;
	expect->compared++;
	replay_verdict_text(r, verdict, got, sizeof(got));
	if (is_as(rule->text, got))
		return;
	expect->differences++;
	report_difference(r, number, number, rule->text, got);
}

bool replay_expect_finish(struct replay *r, uint64_t *compared)
{
	const struct replay_counts *c = &r->counts;
	struct expect *expect = r->expect;
	unsigned int i;
	uint64_t n;

	for (; expect->next < expect->all.n; expect->next++)
		tell_missing(r, &expect->all.at[expect->next], expect->all.at[expect->next].last + 1);
	for (i = 0; i < TOTALS; i++) {
		n = i == TOTAL_PACKETS ? c->packets : i == TOTAL_UNKNOWN ? c->unknown : c->verdict[i];
		if (!expect->total[i].line || expect->total[i].n == n)
			continue;
		expect->differences++;
		report_total(r, total_name(i), expect->total[i].n, n);
	}
	*compared = expect->compared;
	return !expect->differences;
}
