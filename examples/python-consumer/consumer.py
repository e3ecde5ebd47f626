#!/usr/bin/env python3
"""A Sidebus consumer that needs nothing but the standard library of Python 3.8 or later.

usage: consumer.py QUEUE [--until-empty]

SIDEBUS_URL is the address of the sidecar; the default is http://127.0.0.1:7420. The program asks the queue whether
it has sessions and consumes it accordingly. --until-empty ends the program when nothing is available. SIGTERM and
Ctrl-C finish the current message, release the others and end the program.
"""

import base64
import http.client
import json
import os
import random
import signal
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

URL = os.environ.get("SIDEBUS_URL", "http://127.0.0.1:7420")
WAIT = 5  # seconds that a receive waits for a message; a stop takes that long at most, plus the current message
BATCH = 10  # messages a receive may return; all of them stay locked until it is their turn
RETRY_DELAY = "2s"  # how long an abandoned message stays invisible
GRACE = 10  # seconds after a stop in which a failed call is still repeated

# Goes directly to the sidecar, whatever http_proxy is set to.
http_client = urllib.request.build_opener(urllib.request.ProxyHandler({}))
stop_time = None  # when the program was told to stop


class BadMessage(Exception):
    """The message can never be processed. The first argument is the reason, the second one describes it."""


def handle(message):
    """Replace this with your work. It may run twice for one message, so make it safe to repeat.

    If it returns, the message is completed. If it raises BadMessage, the message is dead-lettered. If it raises
    anything else, the message is abandoned and comes again after RETRY_DELAY. This one follows the message's
    properties.
    """
    time.sleep(message["properties"].get("seconds", 0))
    fail = message["properties"].get("fail")
    if fail == "always":
        raise BadMessage("NotWanted", "the property fail is always")
    if fail == "once" and message["deliveryCount"] == 1:
        raise RuntimeError("the property fail is once")
    print(message["sequenceNumber"], content(message), flush=True)


def content(message):
    """Returns the body as its sender sent it: text, JSON or bytes. Over HTTP, JSON is parsed already."""
    if "text" in message:
        return message["text"]
    if "json" in message:
        return message["json"]
    return base64.b64decode(message["body"])


class Refused(Exception):
    """The sidecar refused a call. Decide by the reason, never by the text."""

    def __init__(self, answer):
        super().__init__("%s: %s" % (answer["reason"], answer["message"]))
        self.reason = answer["reason"]
        self.retryable = answer["retryable"]
        self.retry_after = answer["retryAfterMs"] / 1000


def call_once(path, body, wait=0):
    """Makes one call: a POST, or a GET without a body. The timeout must be longer than the wait."""
    request = urllib.request.Request(
        URL + path,
        data=None if body is None else json.dumps(body).encode(),
        headers={"Content-Type": "application/json"},
    )
    try:
        with http_client.open(request, timeout=wait + 10) as response:
            return json.load(response)
    except urllib.error.HTTPError as error:
        with error:
            raise Refused(json.load(error)) from None


def call(path, body=None, wait=0):
    """Makes a call and repeats it with growing pauses while that may help.

    A call that waits is not repeated after a stop; it returns an empty answer.
    """
    pause = 0.1
    while True:
        least = 0
        try:
            return call_once(path, body, wait)
        except Refused as error:  # THROTTLED and STORE_UNAVAILABLE are retryable, for example
            if not error.retryable:
                raise
            failure, least = error, error.retry_after
        except (OSError, http.client.HTTPException, ValueError) as error:  # no answer, or half of one
            failure = error
        if stop_time and wait:
            return {}
        if stop_time and time.monotonic() > stop_time + GRACE:
            raise failure
        log("%s; next try follows" % failure)
        time.sleep(max(least, pause * random.uniform(0.5, 1)))
        pause = min(2 * pause, 5)


class Renewal:
    """Calls renew every few seconds in the background until the with block ends."""

    def __init__(self, renew, every):
        self.renew, self.every, self.ended = renew, every, threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)

    def __enter__(self):
        self.thread.start()

    def __exit__(self, *_):
        self.ended.set()

    def run(self):
        while not self.ended.wait(self.every):
            try:
                self.renew()
            except (Refused, OSError, http.client.HTTPException, ValueError) as error:
                if not self.ended.is_set():
                    log("renewal: %s" % error)  # there is time for another one before the lock expires


class Consumer:
    def __init__(self, queue):
        self.queue = "/v1/queues/" + urllib.parse.quote(queue, safe="")
        options = call(self.queue)
        self.has_sessions = options["requiresSession"]
        self.renew_every = float(options["lockDuration"].rstrip("s")) / 3

    def run(self, wait):
        """Consumes until the program is told to stop or, without a wait, until nothing is available."""
        some = True
        while not stop_time and (some or wait):
            some = self.next_session(wait) if self.has_sessions else self.next_batch(wait)

    # A queue without sessions: a batch of messages, each with a lock of its own.

    def next_batch(self, wait):
        messages = self.receive(wait, maxMessages=BATCH)
        held = {message["lockToken"]: message for message in messages}

        def renew():
            answer = call_once(self.queue + "/messages:renewLocks", {"lockTokens": list(held)})
            for row in answer["results"]:
                if "reason" in row:  # the lock expired: another consumer may have the message
                    held.pop(row["lockToken"], None)

        with Renewal(renew, self.renew_every):
            for message in messages:
                if stop_time:
                    break
                if message["lockToken"] in held:
                    if self.process(message):
                        self.settle("complete", message)
                    held.pop(message["lockToken"], None)
        if held:
            self.settle("release", *held.values())
        return bool(messages)

    # A queue with sessions: one lock for all messages of a session, which come in order, one at a time. One call
    # completes a message and receives the next one.

    def next_session(self, wait):
        answer = call(self.queue + "/sessions:accept", {"maxWait": "%ds" % wait}, wait)
        session = answer.get("session")
        if not session:
            return False
        lock = {"lockToken": session["lockToken"]}
        with Renewal(lambda: call_once(self.queue + "/sessions:renewLock", lock), self.renew_every):
            try:
                self.process_session(session)
                call(self.queue + "/sessions:close", lock)
            except Refused as error:
                if error.reason != "SESSION_LOCK_LOST":
                    raise
                log("session %s: %s" % (session["sessionId"], error))  # another consumer may have it
        return True

    def process_session(self, session):
        # The state is the number of the last message whose work is done. It is bytes, in base64.
        done = int(base64.b64decode(session.get("state", "")) or 0)
        lock = {"sessionLockToken": session["lockToken"]}
        finished = []  # the message whose work is done, to be completed
        while not stop_time:
            messages = self.complete_and_receive(finished, lock)
            finished = []
            if not messages:
                return
            number = int(messages[0]["sessionSequence"])  # int64 is a string in JSON
            # If number == done, the state was set, but then the message was not completed.
            if number == done or self.process(messages[0], session):
                done, finished = number, messages
        if finished:
            self.settle("complete", *finished, **lock)

    def complete_and_receive(self, finished, lock):
        body = {"lockTokens": [message["lockToken"] for message in finished], "maxWait": "0s", **lock}
        answer = call(self.queue + "/messages:completeAndReceive", body)
        report("complete", finished, answer["results"])
        if "failure" in answer:  # of the receive only, which repeats what may help
            return self.receive(0, **lock)
        return answer["messages"]

    # Both.

    def receive(self, wait, **body):
        body["maxWait"] = "%ds" % wait  # without it, the receive waits for 60 s
        return call(self.queue + "/messages:receive", body, wait).get("messages", [])

    def process(self, message, session=None):
        """Hands a message to handle. Returns whether its work is done; if not, the message is settled."""
        lock = {"sessionLockToken": session["lockToken"]} if session else {}
        try:
            handle(message)
        except BadMessage as error:
            reason, description = error.args
            self.settle("deadLetter", message, reason=reason, description=description[:4096], **lock)
        except Exception as error:  # the queue's maxDeliveryCount bounds the deliveries
            log("%s: %r" % (message["sequenceNumber"], error))
            self.settle("abandon", message, delay=RETRY_DELAY, **lock)
        else:
            if session:  # first the state, then complete
                state = base64.b64encode(message["sessionSequence"].encode()).decode()
                call(self.queue + "/sessions:setState", {"lockToken": session["lockToken"], "state": state})
            return True
        return False

    def settle(self, verb, *messages, **body):
        """Settles messages. A row of the answer with a reason is a message that was not settled."""
        body["lockTokens"] = [message["lockToken"] for message in messages]
        answer = call(self.queue + "/messages:" + verb, body)
        report(verb, messages, answer["results"])


def report(verb, messages, results):
    for message, row in zip(messages, results):
        log("%s %s: %s" % (message["sequenceNumber"], verb, row.get("reason", "done")))


def log(text):
    print(text, file=sys.stderr, flush=True)


def stop(*_):
    global stop_time
    stop_time = stop_time or time.monotonic()


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    Consumer(sys.argv[1]).run(0 if "--until-empty" in sys.argv[2:] else WAIT)
