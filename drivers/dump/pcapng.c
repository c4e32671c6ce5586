/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include <rocade/pcapng.h>

#define BLOCK_MAX 512 /* without the packet's data */

enum block_type {
	BLOCK_INTERFACE = 1,
	BLOCK_STATISTICS = 5,
	BLOCK_PACKET = 6,
	BLOCK_SECTION = 0x0A0D0D0A
};

/* Options; the numbers have another meaning in each type of block. */
#define OPT_END 0
#define OPT_COMMENT 1
#define SHB_USERAPPL 4
#define IF_NAME 2
#define IF_DESCRIPTION 3
#define IF_TSRESOL 9
#define EPB_FLAGS 2
#define EPB_DROPCOUNT 4
#define ISB_IFRECV 4
#define ISB_IFDROP 5

#define LINKTYPE_ETHERNET 1
#define FLAG_IN 1
#define FLAG_OUT 2

/* A block under construction. */
struct block {
	uint8_t bytes[BLOCK_MAX];
	size_t len;
};

static void
put(struct block *b, const void *bytes, size_t len)
{
	static const uint8_t pad[4];
	size_t tail = -len & 3;

	if (b->len + len + tail > sizeof(b->bytes))
		return;
	if (len != 0) /* memcpy() of no bytes may not be given NULL */
		memcpy(b->bytes + b->len, bytes, len);
	memcpy(b->bytes + b->len + len, pad, tail);
	b->len += len + tail;
}

static void
put16(uint8_t *at, uint16_t value)
{
	at[0] = (uint8_t)value;
	at[1] = (uint8_t)(value >> 8);
}

static void
put32(struct block *b, uint32_t value)
{
	uint8_t bytes[4];

	put16(bytes, (uint16_t)value);
	put16(bytes + 2, (uint16_t)(value >> 16));
	put(b, bytes, sizeof(bytes));
}

/* The higher half comes first, as in the fields of a time. */
static void
put_time(struct block *b, uint64_t ns)
{
	put32(b, (uint32_t)(ns >> 32));
	put32(b, (uint32_t)ns);
}

static void
option(struct block *b, uint16_t code, const void *value, size_t len)
{
	uint8_t head[4];

	if (b->len + sizeof(head) + len + 8 > sizeof(b->bytes))
		return; /* the end of the options must fit, too */
	put16(head, code);
	put16(head + 2, (uint16_t)len);
	put(b, head, sizeof(head));
	put(b, value, len);
}

static void
option_text(struct block *b, uint16_t code, const char *text)
{
	option(b, code, text, strlen(text));
}

static void
option_number(struct block *b, uint16_t code, uint64_t value, size_t len)
{
	uint8_t bytes[8];

	for (size_t i = 0; i < len; i++)
		bytes[i] = (uint8_t)(value >> 8 * i);
	option(b, code, bytes, len);
}

/* Writes the block: its fixed fields, data, and options. The length stands at both ends. */
static void
block_write(FILE *to, uint32_t type, const struct block *fixed, const uint8_t *data,
	uint32_t data_len, const struct block *options)
{
	static const uint8_t pad[4];
	size_t tail = -(size_t)data_len & 3;
	struct block ends = {.len = 0};
	uint32_t len = (uint32_t)(12 + fixed->len + data_len + tail + options->len);

	put32(&ends, type);
	put32(&ends, len);
	fwrite(ends.bytes, 1, ends.len, to);
	fwrite(fixed->bytes, 1, fixed->len, to);
	if (data_len != 0) /* fwrite() may not be given NULL, either */
		fwrite(data, 1, data_len, to);
	fwrite(pad, 1, tail, to);
	fwrite(options->bytes, 1, options->len, to);
	fwrite(ends.bytes + 4, 1, 4, to);
}

static void
block_end(FILE *to, uint32_t type, const struct block *fixed, struct block *options)
{
	option(options, OPT_END, NULL, 0);
	block_write(to, type, fixed, NULL, 0, options);
}

void
pcapng_begin(FILE *to, const char *program)
{
	struct block b = {.len = 0}, options = {.len = 0};

	put32(&b, 0x1A2B3C4D); /* the reader learns the byte order */
	put32(&b, 1);          /* version 1.0 */
	put32(&b, UINT32_MAX); /* length of the section, two words: not known */
	put32(&b, UINT32_MAX);
	option_text(&options, SHB_USERAPPL, program);
	block_end(to, BLOCK_SECTION, &b, &options);
}

void
pcapng_interface(FILE *to, const char *name, const char *description, uint32_t snap)
{
	struct block b = {.len = 0}, options = {.len = 0};

	put32(&b, LINKTYPE_ETHERNET);
	put32(&b, snap);
	option_text(&options, IF_NAME, name);
	option_text(&options, IF_DESCRIPTION, description);
	option_number(&options, IF_TSRESOL, 9, 1);
	block_end(to, BLOCK_INTERFACE, &b, &options);
}

void
pcapng_packet(FILE *to, const struct pcapng_packet *p)
{
	struct block b = {.len = 0}, options = {.len = 0};

	put32(&b, p->interface);
	put_time(&b, p->wall_ns);
	put32(&b, p->kept);
	put32(&b, p->len);
	option_number(&options, EPB_FLAGS, p->out ? FLAG_OUT : FLAG_IN, 4);
	if (p->lost != 0)
		option_number(&options, EPB_DROPCOUNT, p->lost, 8);
	if (p->comment != NULL)
		option_text(&options, OPT_COMMENT, p->comment);
	option(&options, OPT_END, NULL, 0);
	block_write(to, BLOCK_PACKET, &b, p->data, p->kept, &options);
}

void
pcapng_statistics(
	FILE *to, uint32_t interface, uint64_t wall_ns, uint64_t written, uint64_t lost)
{
	struct block b = {.len = 0}, options = {.len = 0};

	put32(&b, interface);
	put_time(&b, wall_ns);
	option_number(&options, ISB_IFRECV, written + lost, 8);
	option_number(&options, ISB_IFDROP, lost, 8);
	block_end(to, BLOCK_STATISTICS, &b, &options);
}
