/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pcap_file.c: which file a capture port has, and that no file is written by two ports, or read and written. Control
 * thread.
 */
#include "drivers/pcap_file.h"

#include "base/heap.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int leat_pcap_file_open(const struct pcap_file *file, int flags, int std)
{
	int fd = strcmp(file->name, "-") != 0 ? open(file->name, flags | O_CLOEXEC | O_NOCTTY, 0666) :
						fcntl(std, F_DUPFD_CLOEXEC, 0);

	return fd < 0 ? -errno : fd;
}

FILE *leat_pcap_stream_open(int fd, const char *mode)
{
	FILE *stream = fdopen(fd, mode);
	int err = errno;

	if (!stream)
		close(fd);
	errno = err;
	return stream;
}

int leat_pcap_file_identify(struct pcap_file *file, int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	file->regular = S_ISREG(st.st_mode);
	file->waits = S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode) || isatty(fd);
	file->dev = st.st_dev;
	file->ino = st.st_ino;
	return 0;
}

void leat_pcap_file_forget(struct pcap_file *file)
{
	file->regular = file->waits = false;
}

/* A look for another port that has the same file open, where one of the two writes it. */
struct pcap_rival {
	const struct pcap_file *file;
	const struct leat_netdev *found;
};

static void compare_port(struct leat_netdev *dev, void *arg)
{
	struct pcap_rival *rival = arg;
	const struct pcap_file *mine = rival->file, *other = dev->priv;

	if ((strcmp(dev->driver, "pcap-in") != 0 && strcmp(dev->driver, "pcap-out") != 0) || other == mine)
		return;
	if (other->regular && (other->writes || mine->writes) && other->dev == mine->dev && other->ino == mine->ino)
		rival->found = dev;
}

int leat_pcap_file_claim(struct leat_netdev *dev, struct leat_diag *diag)
{
	struct pcap_file *file = dev->priv;
	struct pcap_rival rival = { .file = file };

	if (file->regular)
		leat_net_for_each_port(dev->net, compare_port, &rival);
	if (!rival.found)
		return 0;
	leat_diag_add(diag, "capture '%s' is the file that port '%s' %s", file->name, rival.found->name,
		      ((const struct pcap_file *)rival.found->priv)->writes ? "writes" : "reads");
	return -EBUSY;
}

int leat_pcap_keep_file(struct leat_netdev **dev, char **copy, const char *file, struct leat_diag *diag)
{
	*copy = leat_heap_strdup(file);
	if (*copy)
		return 0;
	leat_diag_add(diag, "cannot keep the file name: %s", strerror(ENOMEM));
	leat_netdev_destroy(*dev);
	*dev = NULL;
	return -ENOMEM;
}
