/* The guest's end of a trial: libibverbs and librdmacm over siw, against siw_peer on the host.
 *
 *   guest_peer server PORT                      serves for ever in the background, a thread a
 *                                               connection; returns when it listens
 *   guest_peer client ADDRESS PORT COUNT PLAN   COUNT connections at once; PLAN in hex digits
 *
 * The plan of a trial is the Request's private data (plan.py lays it out). A round has an active end, which
 * does the operation once for each size, and a passive one, which says where to, and judges. All
 * memory has a content that depends on seed, round, size and offset; what lies between two messages
 * must stay as it was. Each connection prints one line: "SEED ok", "SEED broken ...", "SEED failed: ...".
 */
#include <arpa/inet.h>
#include <endian.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { PLAN_MAGIC = 0x54524c31, REPLY_MAGIC = 0x54524c32, CONTROL_MAGIC = 0x54524c43 };
enum { MAX_SIZES = 40, CONTROL = 256, SLOTS = 4, GAP = 64, POISON = 0xdb, READS = 16, BREACH = 64,
       BREACH_SEGMENTS = 10000, SHORT_RECEIVE = 32 };
enum operation { SEND, SEND_SOLICITED, SEND_INVALIDATE, WRITE, READ };
enum kind { READY = 1, DONE, VERDICT };
static const char *const NAMES[] = { "", "Ready", "Done", "Verdict" };
enum fault { NONE, WRITE_BAD_STAG, READ_BAD_STAG, WRITE_BOUNDS, READ_BOUNDS, WRITE_NO_RIGHT,
             READ_NO_RIGHT, SEND_NO_RECEIVE, SEND_TOO_LONG, SEND_TOO_LONG_SEGMENTS,
             INVALIDATE_BAD_STAG, WRITE_INVALIDATED, READ_INVALIDATED };

struct plan {
	uint8_t operation, acceptor_speaks, fault, fault_round, count, pairs;
	uint16_t patience; /* seconds */
	uint64_t seed;
	uint32_t sizes[MAX_SIZES];
};

struct plan_octets {
	uint32_t magic;
	uint8_t operation, acceptor_speaks, fault, fault_round;
	uint64_t seed;
	uint16_t patience;
	uint8_t count, pairs;
	uint32_t sizes[MAX_SIZES];
} __attribute__((packed));

struct reply_octets {
	uint32_t magic;
	uint64_t seed;
} __attribute__((packed));

struct control {
	uint32_t magic;
	uint8_t kind, ok, reserved[2];
	uint32_t stag, reserved2;
	uint64_t address, length;
	char text[64];
	uint32_t stags[MAX_SIZES];
} __attribute__((packed));

struct connection {
	struct rdma_cm_id *id;
	struct rdma_event_channel *events;
	struct ibv_pd *pd;
	struct ibv_comp_channel *notices;
	struct ibv_cq *cq;
	struct ibv_mr *data_mr, *control_mr, *victims[MAX_SIZES];
	uint8_t *data, *control;
	uint64_t data_octets, offsets[MAX_SIZES];
	struct plan plan;
	int initiator, round, unfinished;
	int sent_controls, posted_controls, taken_controls, heard_controls;
	int connected, disconnected, errors;
	int arrived;      /* messages of the round, in order */
	uint32_t lengths[MAX_SIZES];
	char text[200], statuses[200];
};

static int fail(struct connection *c, const char *format, ...)
{
	va_list list;

	if (c->text[0])
		return -1;
	va_start(list, format);
	vsnprintf(c->text, sizeof c->text, format, list);
	va_end(list);
	return -1;
}

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static int decode(const void *octets, size_t length, struct plan *plan)
{
	struct plan_octets in = { 0 };

	memcpy(&in, octets, length < sizeof in ? length : sizeof in);
	if (length < 20 || be32toh(in.magic) != PLAN_MAGIC || in.count > MAX_SIZES)
		return -1;
	plan->operation = in.operation;
	plan->acceptor_speaks = in.acceptor_speaks;
	plan->fault = in.fault;
	plan->fault_round = in.fault_round;
	plan->seed = be64toh(in.seed);
	plan->patience = be16toh(in.patience);
	plan->count = in.count;
	plan->pairs = in.pairs;
	for (int i = 0; i < in.count; ++i)
		plan->sizes[i] = be32toh(in.sizes[i]);
	return 0;
}

/* The content; pattern of apps/workload. */
static uint64_t word_at(uint64_t seed, uint64_t generation, uint64_t offset)
{
	uint64_t z = (seed * 0x9e3779b97f4a7c15ull + generation) * 0xbf58476d1ce4e5b9ull +
		     offset / 8 * 0x94d049bb133111ebull;

	z ^= z >> 29;
	z *= 0xbf58476d1ce4e5b9ull;
	return z ^ z >> 32;
}

static uint64_t generation(const struct connection *c, int index)
{
	return (uint64_t)c->round * MAX_SIZES + index;
}

static void fill(struct connection *c, int index)
{
	uint8_t *at = c->data + c->offsets[index];
	uint32_t size = c->plan.sizes[index];

	for (uint32_t i = 0; i < size; i += 8) {
		uint64_t word = word_at(c->plan.seed, generation(c, index), i);
		memcpy(at + i, &word, size - i < 8 ? size - i : 8);
	}
}

static int compare(struct connection *c, int index)
{
	const uint8_t *at = c->data + c->offsets[index];
	uint32_t size = c->plan.sizes[index];
	uint64_t end = index + 1 < c->plan.count ? c->offsets[index + 1] : c->data_octets;

	for (uint32_t i = 0; i < size; i += 8) {
		uint64_t word = word_at(c->plan.seed, generation(c, index), i);
		if (memcmp(at + i, &word, size - i < 8 ? size - i : 8))
			return fail(c, "round %d, size %u: wrong octets from %u on", c->round, size, i);
	}
	for (const uint8_t *p = at + size; p < c->data + end; ++p)
		if (*p != POISON)
			return fail(c, "round %d, size %u: octet %ld behind it changed", c->round, size,
				    (long)(p - at - size));
	return 0;
}

/* Whoever speaks first is passive first. */
static int speaks_first(const struct connection *c)
{
	return c->initiator != c->plan.acceptor_speaks;
}

static void lay_out(struct connection *c)
{
	uint64_t at = GAP;

	for (int i = 0; i < c->plan.count; ++i) {
		c->offsets[i] = at;
		at += ((uint64_t)c->plan.sizes[i] + 63) / 64 * 64 + GAP;
	}
	c->data_octets = at < BREACH_SEGMENTS ? BREACH_SEGMENTS : at;
}

static int register_all(struct connection *c)
{
	int rights = IBV_ACCESS_LOCAL_WRITE;
	int victim = rights | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;

	if (c->plan.fault != WRITE_NO_RIGHT)
		rights |= IBV_ACCESS_REMOTE_WRITE;
	if (c->plan.fault != READ_NO_RIGHT)
		rights |= IBV_ACCESS_REMOTE_READ;
	c->data = aligned_alloc(4096, (c->data_octets + 4095) / 4096 * 4096);
	c->control = aligned_alloc(4096, 4096);
	if (!c->data || !c->control)
		return fail(c, "no memory");
	memset(c->control, 0, 4096);
	c->data_mr = ibv_reg_mr(c->pd, c->data, c->data_octets, rights);
	c->control_mr = ibv_reg_mr(c->pd, c->control, 4096, IBV_ACCESS_LOCAL_WRITE);
	if (!c->data_mr || !c->control_mr)
		return fail(c, "ibv_reg_mr of %lu octets: %m", (unsigned long)c->data_octets);
	for (int i = 0; c->plan.operation == SEND_INVALIDATE && i < c->plan.count; ++i) {
		c->victims[i] = ibv_reg_mr(c->pd, c->data, 64, victim);
		if (!c->victims[i])
			return fail(c, "ibv_reg_mr: %m");
	}
	return 0;
}

static int post_receive(struct connection *c, uint64_t name, void *at, uint32_t size, uint32_t key)
{
	struct ibv_sge piece = { (uintptr_t)at, size, key };
	/* libsiw refuses a receive without a piece, even for a message of no octets. */
	struct ibv_recv_wr request = { .wr_id = name, .sg_list = &piece, .num_sge = 1 }, *bad;
	int error = ibv_post_recv(c->id->qp, &request, &bad);

	return error ? fail(c, "ibv_post_recv: %s", strerror(error)) : 0;
}

enum { CONTROL_NAME = 1000, SEND_NAME = 2000 };

static int post_control_receive(struct connection *c)
{
	int slot = c->posted_controls++ % SLOTS;

	return post_receive(c, CONTROL_NAME + slot, c->control + slot * CONTROL, CONTROL,
			    c->control_mr->lkey);
}

/* siw names the memory of its queues by offsets that it counts up in pages, and libsiw takes the offset
 * 0x90000 for "none" (SIW_INVAL_UOBJ_KEY of siw_abi.h): a queue there is destroyed again, without an
 * errno, and so is the next one. With 13 pages a connection the twelfth comes near it. A queue that
 * nobody uses keeps the offset taken for as long as the process lives. */
static int occupy_bad_offset(void)
{
	enum { ENTRIES = 32768 }; /* of 32 octets: 257 pages from the first offset on, which is 0 */
	int count;
	struct ibv_context **devices = rdma_get_devices(&count);

	if (!devices || count != 1 || !ibv_create_cq(devices[0], ENTRIES, NULL, NULL, 0)) {
		perror("no queue at 0x90000");
		return -1;
	}
	return 0;
}

static int make_queue_pair(struct connection *c)
{
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 128, .max_recv_wr = 128, .max_send_sge = 1,
			 .max_recv_sge = 1 } };

	lay_out(c);
	c->pd = ibv_alloc_pd(c->id->verbs);
	c->notices = ibv_create_comp_channel(c->id->verbs);
	if (!c->pd || !c->notices)
		return fail(c, "pd or channel: %m");
	c->cq = ibv_create_cq(c->id->verbs, 300, NULL, c->notices, 0);
	if (!c->cq)
		return fail(c, "ibv_create_cq: %m");
	fcntl(c->notices->fd, F_SETFL, O_NONBLOCK);
	attr.send_cq = attr.recv_cq = c->cq;
	if (rdma_create_qp(c->id, c->pd, &attr))
		return fail(c, "rdma_create_qp: %m");
	if (register_all(c))
		return -1;
	return speaks_first(c) ? 0 : post_control_receive(c); /* for Ready */
}

static void take_completion(struct connection *c, const struct ibv_wc *wc)
{
	if (wc->status != IBV_WC_SUCCESS) {
		size_t used = strlen(c->statuses);

		++c->errors;
		if (wc->status != IBV_WC_WR_FLUSH_ERR)
			snprintf(c->statuses + used, sizeof c->statuses - used, " %s%d",
				 wc->wr_id >= SEND_NAME ? "s" : "r", wc->status);
		if (wc->wr_id >= SEND_NAME)
			--c->unfinished;
		return;
	}
	if (wc->wr_id >= SEND_NAME) {
		--c->unfinished;
	} else if (wc->wr_id < MAX_SIZES) {
		/* libsiw does not tell which STag was invalidated: breaches afterwards show it. */
		c->lengths[c->arrived] = wc->byte_len;
		if ((int)wc->wr_id != c->arrived)
			fail(c, "receive %lu completes as %d", (unsigned long)wc->wr_id, c->arrived);
		++c->arrived;
	} else {
		++c->taken_controls;
		if (wc->byte_len != CONTROL)
			fail(c, "a control message of %u octets", wc->byte_len);
	}
}

static void take_event(struct connection *c)
{
	struct rdma_cm_event *event;

	if (rdma_get_cm_event(c->events, &event))
		return;
	if (event->event == RDMA_CM_EVENT_ESTABLISHED)
		c->connected = 1;
	else if (event->event == RDMA_CM_EVENT_DISCONNECTED)
		c->disconnected = 1;
	else
		fail(c, "event %s, status %d, private data '%.*s'", rdma_event_str(event->event),
		     event->status, event->param.conn.private_data_len,
		     event->param.conn.private_data ? (char *)event->param.conn.private_data : "");
	if (event->event == RDMA_CM_EVENT_ESTABLISHED && c->initiator) {
		struct reply_octets reply;

		memcpy(&reply, event->param.conn.private_data,
		       event->param.conn.private_data_len < sizeof reply ? 0 : sizeof reply);
		if (event->param.conn.private_data_len < sizeof reply ||
		    be32toh(reply.magic) != REPLY_MAGIC || be64toh(reply.seed) != c->plan.seed)
			fail(c, "the Reply's private data are wrong");
	}
	rdma_ack_cm_event(event);
}

static int take_completions(struct connection *c)
{
	struct ibv_wc wc[16];
	int count = ibv_poll_cq(c->cq, 16, wc);

	for (int i = 0; i < count; ++i)
		take_completion(c, &wc[i]);
	return count;
}

/* One turn: what there is of completions and events, waiting a little if there is nothing. */
static void turn(struct connection *c)
{
	struct pollfd wait[2] = { { .fd = c->events->fd, .events = POLLIN },
				  { .fd = c->notices->fd, .events = POLLIN } };
	struct ibv_cq *cq;
	void *context;
	int count = take_completions(c);

	if (count == 0) {
		ibv_req_notify_cq(c->cq, 0);
		count = take_completions(c);
	}
	if (poll(wait, 2, count ? 0 : 200) <= 0)
		return;
	if (wait[1].revents && !ibv_get_cq_event(c->notices, &cq, &context))
		ibv_ack_cq_events(cq, 1);
	if (wait[0].revents)
		take_event(c);
	take_completions(c); /* of before a disconnect */
}

#define AWAIT(c, condition, what)                                                          \
	do {                                                                               \
		int64_t end = now_ms() + (c)->plan.patience * 1000ll;                      \
		while (!(c)->text[0] && !(condition)) {                                    \
			if ((c)->errors || (c)->disconnected)                              \
				return fail(c, "round %d: the connection is gone, awaiting %s:%s", \
					    (c)->round, what, (c)->statuses);              \
			if (now_ms() > end)                                                \
				return fail(c, "round %d: no %s within %d s", (c)->round, what, \
					    (c)->plan.patience);                           \
			turn(c);                                                           \
		}                                                                          \
		if ((c)->text[0])                                                          \
			return -1;                                                         \
	} while (0)

static int post_send(struct connection *c, struct ibv_send_wr *request)
{
	struct ibv_send_wr *bad;

	request->wr_id = SEND_NAME + c->unfinished;
	if (request->send_flags & IBV_SEND_SIGNALED)
		++c->unfinished;
	int error = ibv_post_send(c->id->qp, request, &bad);

	return error ? fail(c, "ibv_post_send: %s", strerror(error)) : 0;
}

/* libsiw takes the STag from where Writes have it. */
static void invalidate(struct ibv_send_wr *request, uint32_t stag)
{
	request->invalidate_rkey = stag;
	request->wr.rdma.rkey = stag;
}

static int say(struct connection *c, enum kind kind, int ok)
{
	struct control *out =
		(void *)(c->control + (SLOTS + c->sent_controls++ % SLOTS) * CONTROL);
	struct ibv_sge piece = { (uintptr_t)out, CONTROL, c->control_mr->lkey };
	struct ibv_send_wr request = { .sg_list = &piece, .num_sge = 1, .opcode = IBV_WR_SEND,
				       .send_flags = IBV_SEND_SIGNALED };

	memset(out, 0, sizeof *out);
	out->magic = htobe32(CONTROL_MAGIC);
	out->kind = kind;
	out->ok = ok;
	out->stag = htobe32(c->data_mr->rkey);
	out->address = htobe64((uintptr_t)c->data);
	out->length = htobe64(c->data_octets);
	snprintf(out->text, sizeof out->text, "%.63s", c->text);
	for (int i = 0; i < c->plan.count && c->victims[i]; ++i)
		out->stags[i] = htobe32(c->victims[i]->rkey);
	return post_send(c, &request);
}

/* Awaits the next control message and takes it if it is of this kind. */
static int hear(struct connection *c, enum kind kind, struct control **message)
{
	struct control *in = (void *)(c->control + c->heard_controls % SLOTS * CONTROL);

	AWAIT(c, c->taken_controls > c->heard_controls, NAMES[kind]);
	++c->heard_controls;
	if (message)
		*message = in;
	if (be32toh(in->magic) != CONTROL_MAGIC || in->kind != kind)
		return fail(c, "control message %d instead of %s", in->kind, NAMES[kind]);
	return in->ok ? 0 : fail(c, "the peer says: %.64s", in->text);
}

static int is_send(const struct connection *c)
{
	return c->plan.operation <= SEND_INVALIDATE;
}

static int judge(struct connection *c)
{
	for (int i = 0; i < c->plan.count; ++i) {
		if (is_send(c) && c->lengths[i] != c->plan.sizes[i])
			return fail(c, "round %d: %u octets instead of %u", c->round, c->lengths[i],
				    c->plan.sizes[i]);
		if (compare(c, i))
			return -1;
	}
	return 0;
}

static int be_passive(struct connection *c, int last)
{
	memset(c->data, POISON, c->data_octets);
	c->arrived = 0;
	for (int i = 0; i < c->plan.count; ++i) {
		if (c->plan.operation == READ)
			fill(c, i);
		if (is_send(c) && post_receive(c, i, c->data + c->offsets[i], c->plan.sizes[i],
					       c->data_mr->lkey))
			return -1;
	}
	if (post_control_receive(c) || say(c, READY, 1) || hear(c, DONE, NULL))
		return -1;
	if (c->plan.operation != READ)
		judge(c);
	if (!last && post_control_receive(c))
		return -1;
	int ok = !c->text[0];
	if (say(c, VERDICT, ok) || !ok)
		return -1;
	AWAIT(c, c->unfinished == 0, "completions");
	return 0;
}

static int post_operation(struct connection *c, int i, const struct control *peer)
{
	static const enum ibv_wr_opcode opcodes[] = { IBV_WR_SEND, IBV_WR_SEND, IBV_WR_SEND_WITH_INV,
						      IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ };
	uint32_t size = c->plan.sizes[i];
	struct ibv_sge piece = { (uintptr_t)c->data + c->offsets[i], size, c->data_mr->lkey };
	struct ibv_send_wr request = { .sg_list = &piece, .num_sge = size ? 1 : 0,
				       .opcode = opcodes[c->plan.operation] };

	/* siw sends what is not signalled without a copy, and cuts it as it cuts Read Responses. */
	if (i % 2 == 0 || c->plan.operation == READ)
		request.send_flags |= IBV_SEND_SIGNALED;
	if (c->plan.operation == SEND_SOLICITED)
		request.send_flags |= IBV_SEND_SOLICITED;
	if (c->plan.operation == SEND_INVALIDATE)
		invalidate(&request, be32toh(peer->stags[i]));
	if (!is_send(c)) {
		request.wr.rdma.remote_addr = be64toh(peer->address) + c->offsets[i];
		request.wr.rdma.rkey = be32toh(peer->stag);
	}
	return post_send(c, &request);
}

static int be_active(struct connection *c)
{
	struct control *peer;

	memset(c->data, POISON, c->data_octets);
	for (int i = 0; i < c->plan.count && c->plan.operation != READ; ++i)
		fill(c, i);
	if (hear(c, READY, &peer))
		return -1;
	for (int i = 0; i < c->plan.count; ++i)
		if (post_operation(c, i, peer))
			return -1;
	if (c->plan.operation == READ) {
		AWAIT(c, c->unfinished == 0, "Reads");
		judge(c);
	}
	int ok = !c->text[0];
	if (post_control_receive(c) || say(c, DONE, ok) || !ok || hear(c, VERDICT, NULL))
		return -1;
	AWAIT(c, c->unfinished == 0, "completions");
	return 0;
}

static int post_breach(struct connection *c, const struct control *peer)
{
	struct ibv_sge piece = { (uintptr_t)c->data, BREACH, c->data_mr->lkey };
	struct ibv_send_wr request = { .sg_list = &piece, .num_sge = 1,
				       .send_flags = IBV_SEND_SIGNALED };
	int fault = c->plan.fault;

	request.wr.rdma.rkey = be32toh(peer->stag);
	request.wr.rdma.remote_addr = be64toh(peer->address);
	switch (fault) {
	case SEND_TOO_LONG_SEGMENTS:
		piece.length = BREACH_SEGMENTS;
		request.opcode = IBV_WR_SEND;
		break;
	case SEND_NO_RECEIVE:
	case SEND_TOO_LONG:
		request.opcode = IBV_WR_SEND;
		break;
	case INVALIDATE_BAD_STAG:
		request.opcode = IBV_WR_SEND_WITH_INV;
		invalidate(&request, be32toh(peer->stag) ^ 0xff0000);
		break;
	default:
		request.opcode = fault == READ_BAD_STAG || fault == READ_BOUNDS ||
				 fault == READ_NO_RIGHT || fault == READ_INVALIDATED ?
				 IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE;
		if (fault == WRITE_BAD_STAG || fault == READ_BAD_STAG)
			request.wr.rdma.rkey ^= 0xff0000;
		if (fault == WRITE_BOUNDS || fault == READ_BOUNDS)
			request.wr.rdma.remote_addr += be64toh(peer->length) - BREACH / 2;
	}
	return post_send(c, &request);
}

static int breaks_after_invalidation(const struct connection *c)
{
	return c->plan.fault == WRITE_INVALIDATED || c->plan.fault == READ_INVALIDATED;
}

/* Both ends: the passive one's STag is invalidated, and it says so by a second Ready. */
static int invalidate_first(struct connection *c, int passive)
{
	struct ibv_sge piece = { (uintptr_t)c->data, BREACH, c->data_mr->lkey };
	struct ibv_send_wr request = { .sg_list = &piece, .num_sge = 1,
				       .opcode = IBV_WR_SEND_WITH_INV,
				       .send_flags = IBV_SEND_SIGNALED };
	struct control *peer;

	if (passive) {
		AWAIT(c, c->arrived > 0, "Send with Invalidate");
		return say(c, READY, 1);
	}
	if (hear(c, READY, &peer) || post_control_receive(c))
		return -1;
	invalidate(&request, be32toh(peer->stag));
	return post_send(c, &request);
}

/* A round in which the active end breaks a rule: both report how the connection ended. */
static int break_rule(struct connection *c, int passive)
{
	int64_t end = now_ms() + c->plan.patience * 1000ll;

	if (passive) {
		uint32_t room = c->plan.fault == SEND_TOO_LONG ||
				c->plan.fault == SEND_TOO_LONG_SEGMENTS ? SHORT_RECEIVE : CONTROL;

		c->arrived = 0;
		if (c->plan.fault != SEND_NO_RECEIVE &&
		    post_receive(c, 0, c->control + 2 * SLOTS * CONTROL, room, c->control_mr->lkey))
			return -1;
		if (say(c, READY, 1))
			return -1;
		if (breaks_after_invalidation(c) && invalidate_first(c, 1))
			return -1;
	} else {
		struct control *peer;
		if (breaks_after_invalidation(c) && invalidate_first(c, 0))
			return -1;
		if (hear(c, READY, &peer) || post_breach(c, peer))
			return -1;
	}
	while (!c->disconnected && !c->text[0] && now_ms() < end)
		turn(c);
	for (int i = 0; i < 3; ++i)
		turn(c);
	return c->disconnected ? 0 : fail(c, "the connection lives on after the breach");
}

static int converse(struct connection *c)
{
	int passive = speaks_first(c);
	int rounds = c->plan.pairs == 255 ? 1 << 30 : 2 * c->plan.pairs;

	AWAIT(c, c->connected, "connection");
	for (c->round = 1; c->round <= rounds; ++c->round, passive = !passive) {
		if (c->plan.fault && c->round == c->plan.fault_round)
			return break_rule(c, passive);
		if (passive ? be_passive(c, c->round == rounds) : be_active(c))
			return -1;
	}
	/* The last active end has heard everything: it goes first. (`passive` is of the next round.) */
	int64_t end = now_ms() + c->plan.patience * 1000ll;
	while (!passive && !c->disconnected && now_ms() < end)
		turn(c);
	return 0;
}

static void clean_up(struct connection *c)
{
	rdma_disconnect(c->id);
	for (int64_t end = now_ms() + 3000; c->connected && !c->disconnected && now_ms() < end;)
		turn(c);
	if (c->id->qp)
		rdma_destroy_qp(c->id);
	for (int i = 0; i < MAX_SIZES && c->victims[i]; ++i)
		ibv_dereg_mr(c->victims[i]);
	if (c->data_mr)
		ibv_dereg_mr(c->data_mr);
	if (c->control_mr)
		ibv_dereg_mr(c->control_mr);
	if (c->cq)
		ibv_destroy_cq(c->cq);
	if (c->notices)
		ibv_destroy_comp_channel(c->notices);
	if (c->pd)
		ibv_dealloc_pd(c->pd);
	rdma_destroy_id(c->id);
	rdma_destroy_event_channel(c->events);
	free(c->data);
	free(c->control);
}

/* Ends a connection that has an id. Returns whether all went well. */
static int report(struct connection *c, int result)
{
	if (result)
		printf("%lu failed: %s\n", (unsigned long)c->plan.seed, c->text);
	else if (c->plan.fault)
		printf("%lu broken%s\n", (unsigned long)c->plan.seed, c->statuses);
	else
		printf("%lu ok\n", (unsigned long)c->plan.seed);
	fflush(stdout);
	clean_up(c);
	return result == 0;
}

static void *accept_one(void *argument)
{
	struct connection *c = argument;
	struct reply_octets reply = { htobe32(REPLY_MAGIC), htobe64(c->plan.seed) };
	struct rdma_conn_param param = { .private_data = &reply, .private_data_len = sizeof reply,
		.responder_resources = READS, .initiator_depth = READS };
	int result;

	c->events = rdma_create_event_channel();
	if (!c->events || rdma_migrate_id(c->id, c->events)) {
		printf("0 failed: no event channel\n");
	} else {
		result = make_queue_pair(c);
		if (!result && rdma_accept(c->id, &param))
			result = fail(c, "rdma_accept: %m");
		report(c, result ? result : converse(c));
	}
	free(c);
	return NULL;
}

static int serve(int port, int ready)
{
	struct sockaddr_in here = { .sin_family = AF_INET, .sin_port = htons(port) };
	struct rdma_event_channel *events = rdma_create_event_channel();
	struct rdma_cm_event *event;
	struct rdma_cm_id *listener;
	pthread_t thread;

	if (!events || rdma_create_id(events, &listener, NULL, RDMA_PS_TCP) ||
	    rdma_bind_addr(listener, (struct sockaddr *)&here) || rdma_listen(listener, 64)) {
		perror("listen");
		return 2;
	}
	if (write(ready, "", 1) != 1)
		return 2;
	close(ready);
	while (!rdma_get_cm_event(events, &event)) {
		struct connection *c = calloc(1, sizeof *c);

		if (!c)
			return 2;
		c->id = event->id;
		if (event->event != RDMA_CM_EVENT_CONNECT_REQUEST) {
			printf("0 listener: %s\n", rdma_event_str(event->event));
			rdma_ack_cm_event(event);
			free(c);
			continue;
		}
		int bad = decode(event->param.conn.private_data, event->param.conn.private_data_len,
				 &c->plan);
		rdma_ack_cm_event(event);
		if (bad) {
			printf("0 failed: the Request brings no plan\n");
			rdma_reject(c->id, NULL, 0);
			rdma_destroy_id(c->id);
			free(c);
			continue;
		}
		if (pthread_create(&thread, NULL, accept_one, c))
			return 2;
		pthread_detach(thread);
	}
	return 2;
}

/* In a process of its own; returns when that listens, or has failed. */
static int serve_in_background(int port)
{
	int pipes[2];
	char octet;

	if (pipe(pipes))
		return 2;
	switch (fork()) {
	case -1:
		return 2;
	case 0:
		close(pipes[0]);
		setsid();
		return occupy_bad_offset() ? 2 : serve(port, pipes[1]);
	}
	close(pipes[1]);
	return read(pipes[0], &octet, 1) == 1 ? 0 : 2;
}

struct call {
	pthread_t thread;
	struct sockaddr_in to;
	uint8_t plan[sizeof(struct plan_octets)];
	size_t plan_length;
	int index, good;
};

static int await_event(struct connection *c, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event;

	if (rdma_get_cm_event(c->events, &event))
		return fail(c, "rdma_get_cm_event: %m");
	if (event->event != type)
		fail(c, "event %s, status %d", rdma_event_str(event->event), event->status);
	rdma_ack_cm_event(event);
	return c->text[0] ? -1 : 0;
}

static int open_call(struct connection *c, struct call *call)
{
	struct rdma_conn_param param = { .private_data = call->plan,
		.private_data_len = call->plan_length, .responder_resources = READS,
		.initiator_depth = READS };

	if (rdma_resolve_addr(c->id, NULL, (struct sockaddr *)&call->to, 5000) ||
	    await_event(c, RDMA_CM_EVENT_ADDR_RESOLVED))
		return fail(c, "rdma_resolve_addr: %m");
	if (rdma_resolve_route(c->id, 5000) || await_event(c, RDMA_CM_EVENT_ROUTE_RESOLVED))
		return fail(c, "rdma_resolve_route: %m");
	if (make_queue_pair(c))
		return -1;
	return rdma_connect(c->id, &param) ? fail(c, "rdma_connect: %m") : 0;
}

static void *connect_one(void *argument)
{
	struct call *call = argument;
	struct connection *c = calloc(1, sizeof *c);
	uint64_t seed;

	if (!c)
		return NULL;
	memcpy(&seed, call->plan + 8, 8);
	seed = htobe64(be64toh(seed) + call->index);
	memcpy(call->plan + 8, &seed, 8);
	c->initiator = 1;
	c->events = rdma_create_event_channel();
	if (decode(call->plan, call->plan_length, &c->plan) || !c->events ||
	    rdma_create_id(c->events, &c->id, NULL, RDMA_PS_TCP)) {
		printf("0 failed: no plan or no id\n");
	} else {
		int result = open_call(c, call);
		call->good = report(c, result ? result : converse(c));
	}
	free(c);
	return NULL;
}

static int connect_all(const char *address, int port, int count, const char *hex)
{
	struct call *calls = calloc(count, sizeof *calls);
	int good = 0;

	for (int i = 0; calls && i < count; ++i) {
		struct call *call = &calls[i];

		call->index = i;
		call->to.sin_family = AF_INET;
		call->to.sin_port = htons(port);
		inet_pton(AF_INET, address, &call->to.sin_addr);
		for (const char *h = hex; h[0] && h[1] && call->plan_length < sizeof call->plan; h += 2) {
			char digits[] = { h[0], h[1], 0 };
			call->plan[call->plan_length++] = strtoul(digits, NULL, 16);
		}
		if (pthread_create(&call->thread, NULL, connect_one, call))
			return 2;
	}
	for (int i = 0; calls && i < count; ++i) {
		pthread_join(calls[i].thread, NULL);
		good += calls[i].good;
	}
	printf("%d of %d good\n", good, count);
	return good == count ? 0 : 1;
}

int main(int argc, char **argv)
{
	/* siw sends on its connection's socket within our calls, and without MSG_NOSIGNAL: where the
	 * peer has reset it the caller would be killed, silently and with all its connections. */
	signal(SIGPIPE, SIG_IGN);
	if (argc == 3 && !strcmp(argv[1], "server"))
		return serve_in_background(atoi(argv[2]));
	if (argc == 6 && !strcmp(argv[1], "client"))
		return occupy_bad_offset() ? 2 : connect_all(argv[2], atoi(argv[3]), atoi(argv[4]), argv[5]);
	fprintf(stderr, "usage: guest_peer server PORT | client ADDRESS PORT COUNT PLAN\n");
	return 2;
}
