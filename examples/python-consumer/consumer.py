#!/usr/bin/env python3
"""A Sidebus consumer with nothing but Python's standard library.

usage: consumer.py QUEUE [--until-empty]

SIDEBUS_URL names the sidecar, default http://127.0.0.1:7420. Each message is handed to handle(). What it
returns from is completed; a ValueError means that the message is bad and dead-letters it; any other exception
gives it back for another try. SIGTERM or Ctrl-C stops after the message in hand.
"""

import base64
import json
import os
import signal
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

URL = os.environ.get("SIDEBUS_URL", "http://127.0.0.1:7420")
stopping = False
idle = False  # waiting for a message, with nothing in hand


def handle(message):
    """Your work goes here."""
    print(message["sequenceNumber"], content(message), flush=True)


def content(message):
    """The body in the form its sender chose: text, JSON or bytes."""
    if "text" in message:
        return message["text"]
    if "json" in message:
        return json.loads(message["json"])
    return base64.b64decode(message.get("body", ""))


class Refused(Exception):
    """The sidecar said no. reason is one word of a closed set; switch on it, never on the text."""

    def __init__(self, answer):
        super().__init__("%s: %s" % (answer.get("reason"), answer.get("message")))
        self.reason = answer.get("reason")
        self.retryable = answer.get("retryable", False)


def call(queue, verb, timeout, **body):
    """One call of the API, such as messages:receive."""
    request = urllib.request.Request(
        "%s/v1/queues/%s/messages:%s" % (URL, urllib.parse.quote(queue, safe=""), verb),
        data=json.dumps(body).encode(),
        headers={"Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=timeout) as response:
            return json.load(response)
    except urllib.error.HTTPError as error:
        with error:
            raise Refused(json.load(error)) from None


def settle(queue, verb, message, **more):
    """Complete, abandon or dead-letter one message. A lost lock means that somebody else has it by now."""
    answer = call(queue, verb, 10, lockTokens=[message["lockToken"]], **more)
    reason = answer["results"][0].get("reason")
    if reason:
        print("%s of %s: %s" % (verb, message["sequenceNumber"], reason), file=sys.stderr)


def work(queue, message):
    try:
        handle(message)
    except ValueError as error:
        settle(queue, "deadLetter", message, reason=type(error).__name__, description=str(error)[:4096])
    except Exception as error:  # anything else may pass: the queue's maxDeliveryCount ends it if not
        print("%s: %r" % (message["sequenceNumber"], error), file=sys.stderr)
        settle(queue, "abandon", message)
    else:
        settle(queue, "complete", message)


def receive(queue, wait):
    global idle
    idle = True
    try:
        return call(queue, "receive", 30, maxMessages=1, maxWait=wait)["messages"]
    finally:
        idle = False


def main(queue, until_empty):
    pause = 0.1
    while not stopping:
        try:
            messages = receive(queue, "0s" if until_empty else "20s")
            if until_empty and not messages:
                return
            for message in messages:
                work(queue, message)
            pause = 0.1
        except (Refused, OSError) as error:  # OSError: the sidecar is not there, or not any more
            if isinstance(error, Refused) and not error.retryable:
                raise
            if stopping:
                return
            print("%s; again in %.1f s" % (error, pause), file=sys.stderr)
            time.sleep(pause)
            pause = min(2 * pause, 5)


def stop(*_):
    global stopping
    stopping = True
    if idle:
        sys.exit(0)  # nobody gets the answer, so the sidecar gives its message back


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    main(sys.argv[1], "--until-empty" in sys.argv[2:])
