"""Shows with pyverbs, over one connection of the connection manager, what rdma-core's own tests show
with queue pairs that are addressed by GID and number: windows of both types, a region that is
registered again, a completion queue that is resized while it has completions, completion events,
requests in batches (ibv_wr_start() and its kin), and completions that are read by their fields.
Two processes; the one that was asked (server) gives memory, the other one (client) writes there."""

import os
import signal
import sys
import traceback

from pyverbs.cmid import CMID, AddrInfo, CMEvent, CMEventChannel, ConnParam
from pyverbs.cq import CQ, CQEX, CompChannel, CqInitAttrEx, PollCqAttr
from pyverbs.mr import MR, MW, MWBind, MWBindInfo
from pyverbs.qp import QPCap, QPEx, QPInitAttrEx
from pyverbs.wr import SGE, RecvWR, SendWR
import pyverbs.cm_enums as ce
import pyverbs.enums as e

ADDRESS, PORT = sys.argv[1], sys.argv[2]
PIECE = 1024
LOCAL = e.IBV_ACCESS_LOCAL_WRITE
GIVEN = LOCAL | e.IBV_ACCESS_REMOTE_WRITE
GIVES = e.IBV_ACCESS_REMOTE_WRITE


class Side:
    """One end: its queue pair, and a line to the other process."""

    def __init__(self, asks, hears, tells):
        self.asks = asks
        self.hears, self.tells = os.fdopen(hears, "r"), os.fdopen(tells, "w")
        self.channel = CMEventChannel()
        self.id = CMID(creator=self.channel, port_space=ce.RDMA_PS_TCP)
        self.listener = None
        if asks:
            self.connect()
        else:
            self.accept()

    def tell(self, *words):
        print(*words, file=self.tells, flush=True)

    def hear(self):
        return self.hears.readline().split()

    def event(self, kind):
        event = CMEvent(self.channel)
        assert event.event_type == kind, event.event_str()
        return event

    def make(self):
        """The queue pair with its queue, and memory of four pieces."""
        self.events = CompChannel(self.id.context)
        if self.asks:
            self.queue = CQEX(self.id.context, CqInitAttrEx(cqe=16))
        else:
            self.queue = CQ(self.id.context, 16, None, self.events, 0)
        calls = e.IBV_QP_EX_WITH_SEND | e.IBV_QP_EX_WITH_RDMA_WRITE
        self.qp = QPEx(self.id.context, QPInitAttrEx(
            qp_type=e.IBV_QPT_RC, scq=self.queue, rcq=self.queue, pd=self.id.pd,
            cap=QPCap(max_send_wr=16, max_recv_wr=16), send_ops_flags=calls,
            comp_mask=e.IBV_QP_INIT_ATTR_PD | e.IBV_QP_INIT_ATTR_SEND_OPS_FLAGS))
        self.memory = MR(self.id.pd, 4 * PIECE, GIVEN | e.IBV_ACCESS_MW_BIND)
        self.memory.write("." * (4 * PIECE), 4 * PIECE)

    def ready(self):
        for state in (e.IBV_QPS_INIT, e.IBV_QPS_RTR, e.IBV_QPS_RTS):
            self.qp.modify(*self.id.init_qp_attr(state))

    def connect(self):
        assert self.hear() == ["listening"]
        self.id.resolve_addr(AddrInfo(dst=ADDRESS, dst_service=PORT, port_space=ce.RDMA_PS_TCP))
        self.event(ce.RDMA_CM_EVENT_ADDR_RESOLVED).ack_cm_event()
        self.id.resolve_route()
        self.event(ce.RDMA_CM_EVENT_ROUTE_RESOLVED).ack_cm_event()
        self.make()
        self.id.connect(ConnParam(qp_num=self.qp.qp_num))
        self.event(ce.RDMA_CM_EVENT_CONNECT_RESPONSE).ack_cm_event()
        self.ready()
        self.id.establish()

    def accept(self):
        self.listener = self.id
        self.listener.bind_addr(AddrInfo(src=ADDRESS, src_service=PORT, port_space=ce.RDMA_PS_TCP,
                                         flags=ce.RAI_PASSIVE))
        self.listener.listen()
        self.tell("listening")
        event = self.event(ce.RDMA_CM_EVENT_CONNECT_REQUEST)
        self.id = CMID(creator=event, listen_id=self.listener)
        event.ack_cm_event()
        self.make()
        self.ready()
        self.id.accept(ConnParam(qp_num=self.qp.qp_num))
        self.event(ce.RDMA_CM_EVENT_ESTABLISHED).ack_cm_event()

    def completions(self, count=1):
        """Waits for so many completions. -> their opcodes"""
        found = []
        while len(found) < count:
            found += self.polled_by_field() if self.asks else self.polled()
        return found

    def polled(self):
        done = self.queue.poll(1)[1]
        for each in done:
            assert each.status == e.IBV_WC_SUCCESS, each
        return [each.opcode for each in done]

    def polled_by_field(self):
        if self.queue.start_poll(PollCqAttr()) != 0:
            return []
        found = []
        while True:
            assert self.queue.status == e.IBV_WC_SUCCESS
            assert self.queue.read_qp_num() == self.qp.qp_num
            found.append(self.queue.read_opcode())
            if self.queue.poll_next() != 0:
                self.queue.end_poll()
                return found

    def piece(self, number):
        return SGE(self.memory.buf + number * PIECE, PIECE, self.memory.lkey)

    # ---- The server gives access, and looks what has come. ----

    def give(self, rkey, address, letter):
        """Lets the client write a piece of this letter there. The Send behind the Write says that it
        is there; the Write's own completion at the client does not."""
        self.qp.post_recv(RecvWR(sg=[self.piece(3)], num_sge=1))
        self.tell(rkey, address, letter)
        assert self.completions() == [e.IBV_WC_RECV]

    def has(self, number, letter):
        found = self.memory.read(PIECE, number * PIECE).decode()
        assert found == letter * PIECE, f"piece {number} begins with {found[:16]}"

    def window_of_type_1(self):
        window = MW(self.id.pd, e.IBV_MW_TYPE_1)
        for number, letter in ((0, "a"), (1, "b")):
            at = self.memory.buf + number * PIECE
            bind = MWBind(MWBindInfo(self.memory, at, PIECE, GIVES), e.IBV_SEND_SIGNALED)
            self.qp.bind_mw(window, bind)
            assert self.completions() == [e.IBV_WC_BIND_MW]
            self.give(window.rkey, at, letter)
            self.has(number, letter)
        window.close()

    def window_of_type_2(self):
        window = MW(self.id.pd, e.IBV_MW_TYPE_2)
        at = self.memory.buf + 2 * PIECE
        bind = SendWR(opcode=e.IBV_WR_BIND_MW)
        bind.set_bind_wr(window, MWBindInfo(self.memory, at, PIECE, GIVES))
        self.qp.post_send(bind)
        assert self.completions() == [e.IBV_WC_BIND_MW]
        self.give(bind.rkey, at, "c")
        self.has(2, "c")
        end = SendWR(opcode=e.IBV_WR_LOCAL_INV)
        end.imm_data = bind.rkey
        self.qp.post_send(end)
        assert self.completions() == [e.IBV_WC_LOCAL_INV]
        window.close()

    def region_registered_again(self):
        other = MR(self.id.pd, PIECE, GIVEN)
        region = MR(self.id.pd, PIECE, LOCAL)
        region.rereg(e.IBV_REREG_MR_CHANGE_TRANSLATION | e.IBV_REREG_MR_CHANGE_ACCESS, self.id.pd,
                     other.buf, PIECE, GIVEN)
        self.give(region.rkey, other.buf, "d")
        assert other.read(PIECE, 0).decode() == "d" * PIECE

    def completion_event(self):
        self.qp.post_recv(RecvWR(sg=[self.piece(3)], num_sge=1))
        self.queue.req_notify()
        self.tell("send")
        self.events.get_cq_event(self.queue)
        self.queue.ack_events(1)
        assert self.completions() == [e.IBV_WC_RECV]
        self.has(3, "e")

    def queue_resized_with_completions(self):
        for _ in range(3):
            nothing = SGE(self.memory.buf, 0, self.memory.lkey)
            request = SendWR(opcode=e.IBV_WR_RDMA_WRITE, num_sge=1, sg=[nothing])
            request.set_wr_rdma(0, 0)
            self.qp.post_send(request)
        self.queue.resize(64)
        assert self.completions(3) == [e.IBV_WC_RDMA_WRITE] * 3

    def serve(self):
        self.window_of_type_1()
        self.window_of_type_2()
        self.region_registered_again()
        self.queue_resized_with_completions()
        self.completion_event()
        self.tell("end")

    # ---- The client writes where it is told. ----

    def write(self, rkey, address, letter):
        """Both requests are posted in one batch."""
        self.memory.write(letter * PIECE, PIECE)
        self.qp.wr_start()
        self.qp.wr_id, self.qp.wr_flags = 1, e.IBV_SEND_SIGNALED
        self.qp.wr_rdma_write(rkey, address)
        self.qp.wr_set_sge(self.piece(0))
        self.qp.wr_send()
        self.qp.wr_set_sge(self.piece(0))
        self.qp.wr_complete()
        assert self.completions(2) == [e.IBV_WC_RDMA_WRITE, e.IBV_WC_SEND]

    def send(self):
        self.qp.post_send(SendWR(opcode=e.IBV_WR_SEND, num_sge=1, sg=[self.piece(0)]))

    def work(self):
        while (words := self.hear()) != ["end"]:
            if words == ["send"]:
                self.memory.write("e" * PIECE, PIECE)
                self.send()
                assert self.completions() == [e.IBV_WC_SEND]
            else:
                self.write(int(words[0]), int(words[1]), words[2])


def main():
    to_client, to_server = os.pipe(), os.pipe()
    client = os.fork()  # before there is a device
    signal.alarm(20)  # where one side fails the other one would wait for ever
    if client == 0:
        status = 1
        try:
            Side(True, to_client[0], to_server[1]).work()
            status = 0
        except BaseException:  # pylint: disable=broad-except
            traceback.print_exc()
        sys.stderr.flush()
        os._exit(status)
    Side(False, to_server[0], to_client[1]).serve()
    assert os.waitpid(client, 0)[1] == 0, "the client failed"
    print("ok")


main()
