"""Uses the official SDK of Azure Service Bus for Python against a sidecar.

The first argument is the connection string; the others are the names of the checks to run, without them all. The test
has created the entities. Each check has its own, so all run at the same time. The program fails if one does.
"""

import datetime
import sys
import time
import traceback
import uuid
from concurrent.futures import ThreadPoolExecutor

from azure.servicebus import (
    NEXT_AVAILABLE_SESSION,
    AutoLockRenewer,
    ServiceBusClient,
    ServiceBusMessage,
    ServiceBusReceiveMode,
    ServiceBusSubQueue,
)
from azure.servicebus.exceptions import (
    MessageLockLostError,
    MessageNotFoundError,
    MessageSizeExceededError,
    MessagingEntityNotFoundError,
    OperationTimeoutError,
    ServiceBusAuthenticationError,
    ServiceBusError,
    SessionCannotBeLockedError,
    SessionLockLostError,
)

PATIENCE = 30  # seconds that a receive waits for what must come
BRIEFLY = 0.5  # seconds that a receive waits for what must not come


def equal(got, want):
    assert got == want, f"got {got!r}, want {want!r}"


def body(message):
    return b"".join(message.body)


def take(receiver, count):
    """Receives exactly count messages."""
    messages = []
    while len(messages) < count:
        some = receiver.receive_messages(max_message_count=count - len(messages), max_wait_time=PATIENCE)
        assert some, f"only {len(messages)} of {count} messages came"
        messages.extend(some)
    return messages


def peek(receiver):
    """Peeks from the first message on; without a number, the SDK goes on behind the last one."""
    return receiver.peek_messages(5, sequence_number=1)


def raises(kind, call):
    try:
        call()
    except kind as failure:
        return failure
    raise AssertionError(f"{kind} was not raised")


def later(seconds):
    return datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=seconds)


def send_and_receive(client):
    with client.get_queue_sender("messages") as sender, client.get_queue_receiver("messages") as receiver:
        properties = {"text": "a", "number": 7, "ratio": 0.5, "flag": True, "id": uuid.UUID(int=5)}
        sender.send_messages(ServiceBusMessage(
            b"hello", message_id="m", subject="s", correlation_id="c", content_type="text/x", to="t", reply_to="r",
            reply_to_session_id="rs", partition_key="p", time_to_live=datetime.timedelta(hours=1),
            application_properties=properties,
        ))
        (m,) = take(receiver, 1)
        equal(body(m), b"hello")
        equal((m.message_id, m.subject, m.correlation_id, m.content_type), ("m", "s", "c", "text/x"))
        equal((m.to, m.reply_to, m.reply_to_session_id, m.partition_key), ("t", "r", "rs", "p"))
        equal((m.time_to_live, m.delivery_count, m.sequence_number), (datetime.timedelta(hours=1), 0, 1))
        assert m.enqueued_time_utc and m.locked_until_utc and m.lock_token
        got = {name.decode(): value for name, value in m.application_properties.items()}
        got["text"] = got["text"].decode()
        equal(got, properties)
        receiver.complete_message(m)
        equal(receiver.receive_messages(max_wait_time=BRIEFLY), [])


def batches(client):
    with client.get_queue_sender("batches") as sender, client.get_queue_receiver("batches", prefetch_count=50) as receiver:
        batch = sender.create_message_batch()
        for i in range(30):
            batch.add_message(ServiceBusMessage(str(i)))
        sender.send_messages(batch)
        sender.send_messages([ServiceBusMessage(str(i)) for i in range(30, 50)])
        messages = take(receiver, 50)
        equal([str(m) for m in messages], [str(i) for i in range(50)])
        for m in messages:
            receiver.complete_message(m)


def schedules(client):
    with client.get_queue_sender("scheduled") as sender, client.get_queue_receiver("scheduled") as receiver:
        numbers = sender.schedule_messages([ServiceBusMessage("a"), ServiceBusMessage("b")], later(3600))
        equal([(str(m), m.state.name) for m in peek(receiver)], [("a", "SCHEDULED"), ("b", "SCHEDULED")])
        sender.cancel_scheduled_messages(numbers)
        equal(peek(receiver), [])
        raises(MessageNotFoundError, lambda: sender.cancel_scheduled_messages(numbers))
        sender.send_messages(ServiceBusMessage("soon", scheduled_enqueue_time_utc=later(1)))
        (m,) = take(receiver, 1)
        equal(str(m), "soon")
        receiver.complete_message(m)


def settlements(client):
    with client.get_queue_sender("settled") as sender, client.get_queue_receiver("settled") as receiver:
        sender.send_messages(ServiceBusMessage("x"))
        (m,) = take(receiver, 1)
        receiver.abandon_message(m)
        (m,) = take(receiver, 1)
        equal(m.delivery_count, 1)
        receiver.defer_message(m)
        equal([n.state.name for n in peek(receiver)], ["DEFERRED"])
        (m,) = receiver.receive_deferred_messages(m.sequence_number)
        receiver.dead_letter_message(m, reason="why", error_description="because")
        with client.get_queue_receiver("settled", sub_queue=ServiceBusSubQueue.DEAD_LETTER) as dead:
            (m,) = take(dead, 1)
            equal((str(m), m.dead_letter_reason, m.dead_letter_error_description), ("x", "why", "because"))
            dead.complete_message(m)
        raises(MessageNotFoundError, lambda: receiver.receive_deferred_messages(m.sequence_number))


def receive_and_delete(client):
    mode = ServiceBusReceiveMode.RECEIVE_AND_DELETE
    with client.get_queue_sender("deleted") as sender:
        sender.send_messages([ServiceBusMessage("1"), ServiceBusMessage("2")])
    with client.get_queue_receiver("deleted", receive_mode=mode) as receiver:
        equal([str(m) for m in take(receiver, 2)], ["1", "2"])
        equal(peek(receiver), [])


def locks(client):
    """Locks last 5 s here."""
    with client.get_queue_sender("short") as sender, client.get_queue_receiver("short") as receiver:
        sender.send_messages([ServiceBusMessage("renewed"), ServiceBusMessage("lost")])
        renewed, lost = take(receiver, 2)
        before = renewed.locked_until_utc
        assert receiver.renew_message_lock(renewed) > before
        with AutoLockRenewer() as renewer:
            renewer.register(receiver, renewed, max_lock_renewal_duration=60)
            (again,) = take(receiver, 1)  # when the lock has ended
            equal((str(again), again.delivery_count), ("lost", 1))
            raises(MessageLockLostError, lambda: receiver.complete_message(lost))
            assert renewed.auto_renew_error is None and renewed.locked_until_utc > before
            receiver.complete_message(renewed)
        receiver.complete_message(again)
        equal(peek(receiver), [])


def sessions(client):
    with client.get_queue_sender("sessions") as sender:
        sender.send_messages([ServiceBusMessage("1", session_id="a"), ServiceBusMessage("2", session_id="b")])
    with client.get_queue_receiver("sessions", session_id="a") as a:
        equal((a.session.session_id, a.session.get_state()), ("a", None))
        a.session.set_state("half")
        equal(a.session.get_state(), b"half")
        before = a.session.locked_until_utc
        assert a.session.renew_lock() > before
        (m,) = take(a, 1)
        equal((str(m), m.session_id), ("1", "a"))
        other = client.get_queue_receiver("sessions", session_id="a")
        raises(SessionCannotBeLockedError, other.__enter__)
        other.close()
        with client.get_queue_receiver("sessions", session_id=NEXT_AVAILABLE_SESSION) as following:
            equal(following.session.session_id, "b")
            (n,) = take(following, 1)
            following.defer_message(n)
            (n,) = following.receive_deferred_messages(n.sequence_number)
            following.complete_message(n)
        a.complete_message(m)
    none = client.get_queue_receiver("sessions", session_id=NEXT_AVAILABLE_SESSION, max_wait_time=1)
    raises(OperationTimeoutError, none.__enter__)
    none.close()


def session_loss(client):
    """The lock of a session lasts 5 s here. One that is renewed stays."""
    with client.get_queue_sender("short-sessions") as sender:
        sender.send_messages([ServiceBusMessage("1", session_id="renewed"), ServiceBusMessage("2", session_id="lost")])
    kept = client.get_queue_receiver("short-sessions", session_id="renewed")
    left = client.get_queue_receiver("short-sessions", session_id="lost")
    with kept, left, AutoLockRenewer() as renewer:
        renewer.register(kept, kept.session, max_lock_renewal_duration=60)
        (m,), (n,) = take(kept, 1), take(left, 1)
        with client.get_queue_receiver("short-sessions", session_id=NEXT_AVAILABLE_SESSION, max_wait_time=PATIENCE) as heir:
            equal(heir.session.session_id, "lost")
            raises(SessionLockLostError, lambda: left.complete_message(n))
            (n,) = take(heir, 1)
            heir.complete_message(n)
        kept.complete_message(m)


def topics(client):
    """The subscription "sql" has region = 'eu' with an action, "correlation" has the subject x."""
    with client.get_topic_sender("news") as sender:
        sender.send_messages([
            ServiceBusMessage("us", application_properties={"region": "us"}),
            ServiceBusMessage("eu", application_properties={"region": "eu"}),
            ServiceBusMessage("x", subject="x"),
        ])
        numbers = sender.schedule_messages(ServiceBusMessage("later"), later(3600))
        sender.cancel_scheduled_messages(numbers)
    for subscription, want in {"all": ["us", "eu", "x"], "sql": ["eu"], "correlation": ["x"]}.items():
        with client.get_subscription_receiver("news", subscription) as receiver:
            messages = take(receiver, len(want))
            equal([str(m) for m in messages], want)
            for m in messages:
                receiver.complete_message(m)
            if subscription == "sql":
                equal(messages[0].application_properties[b"seen"], b"yes")
            equal(peek(receiver), [])


def duplicates(client):
    with client.get_queue_sender("unique") as sender, client.get_queue_receiver("unique") as receiver:
        for text in ("first", "second"):
            sender.send_messages(ServiceBusMessage(text, message_id="same"))
        equal([str(m) for m in peek(receiver)], ["first"])


def expiry(client):
    with client.get_queue_sender("expiring") as sender:
        sender.send_messages(ServiceBusMessage("x", time_to_live=datetime.timedelta(seconds=1)))
    with client.get_queue_receiver("expiring", sub_queue=ServiceBusSubQueue.DEAD_LETTER) as dead:
        (m,) = take(dead, 1)
        equal((str(m), m.dead_letter_reason), ("x", "TTLExpiredException"))
        dead.complete_message(m)


def forwarding(client):
    with client.get_queue_sender("forwarding") as sender, client.get_queue_receiver("forwarded") as receiver:
        sender.send_messages(ServiceBusMessage("x"))
        (m,) = take(receiver, 1)
        equal(str(m), "x")
        receiver.complete_message(m)


def large(client):
    content = b"0123456789" * 90_000
    with client.get_queue_sender("large") as sender, client.get_queue_receiver("large") as receiver:
        sender.send_messages(ServiceBusMessage(content))
        (m,) = take(receiver, 1)
        assert body(m) == content
        receiver.complete_message(m)
        raises(MessageSizeExceededError, lambda: sender.send_messages(ServiceBusMessage(bytes(2 << 20))))
        sender.send_messages(ServiceBusMessage("after"))


def refusals(client):
    def send_to(name):
        with client.get_queue_sender(name) as sender:
            sender.send_messages(ServiceBusMessage("x"))

    # It takes each refusal of $cbs for one of the token.
    raises((MessagingEntityNotFoundError, ServiceBusAuthenticationError), lambda: send_to("missing"))
    raises(ServiceBusError, client.get_queue_receiver("sessions").__enter__)


CHECKS = (
    send_and_receive, batches, schedules, settlements, receive_and_delete, locks, sessions, session_loss, topics,
    duplicates, expiry, forwarding, large, refusals,
)


def run(check):
    began = time.monotonic()
    try:
        with ServiceBusClient.from_connection_string(sys.argv[1], retry_total=1) as client:
            check(client)
        print(f"{check.__name__}: {time.monotonic() - began:.1f} s")
        return True
    except BaseException:
        print(f"{check.__name__} failed after {time.monotonic() - began:.1f} s:\n{traceback.format_exc()}")
        return False


def main():
    named = sys.argv[2:]
    checks = [check for check in CHECKS if not named or check.__name__ in named]
    with ThreadPoolExecutor(len(checks)) as pool:
        if not all(list(pool.map(run, checks))):
            sys.exit(1)


main()
