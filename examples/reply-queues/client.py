#!/usr/bin/env python3
"""A requester with a reply queue of its own and nothing but Python's standard library.

usage: client.py COUNT LOG

HTTP is the path of the sidecar's unix socket. It asks for the weekdays of COUNT dates, 10 questions at a time, and writes each answer to
LOG, after the name of its queue. When it ends in order it deletes its queue. When it is killed its queue deletes itself, five minutes
after its last use.
"""

import datetime
import http.client
import json
import os
import random
import socket
import sys
import uuid

REQUESTS = "weekdays"
OPEN = 10  # questions at a time


class Sidecar(http.client.HTTPConnection):
    """HTTP over a unix socket."""

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.connect(os.environ["HTTP"])

    def call(self, method, path, **body):
        self.request(method, "/v1/queues/" + path, json.dumps(body) if body else None)
        response = self.getresponse()
        answer = json.load(response)
        if response.status != 200:
            sys.exit("client.py: %s: %s" % (answer["reason"], answer["message"]))
        return answer


class Client:
    def __init__(self, sidecar):
        self.sidecar = sidecar
        self.queue = "replies-%s" % uuid.uuid4()  # of this process: another one, also a later one, has another
        self.open = {}  # questions without an answer yet, by message id
        # What nobody uses any more goes by itself: this process may not live to delete it.
        sidecar.call("PUT", self.queue, autoDeleteOnIdle="5m")

    def ask(self, days):
        messages = []
        for day in days:
            question = {"messageId": str(uuid.uuid4()), "text": day.isoformat(), "replyTo": self.queue}
            self.open[question["messageId"]] = day
            messages.append(question)
        if messages:
            self.sidecar.call("POST", REQUESTS + "/messages:send", messages=messages)

    def answers(self):
        """Those that have come, at least one. Nobody else has an interest in them, so they need no lock."""
        received = self.sidecar.call(
            "POST", self.queue + "/messages:receive", maxMessages=OPEN // 2, maxWait="20s", mode="RECEIVE_AND_DELETE")
        if not received["messages"]:
            sys.exit("client.py: no answer within 20 s")
        for message in received["messages"]:
            day = self.open.pop(message.get("correlationId"), None)
            if day is None:
                sys.exit("client.py: an answer that is not mine: %s" % message)
            if message["text"] != day.strftime("%A"):
                sys.exit("client.py: %s was no %s" % (day, message["text"]))
            yield day, message["text"]

    def close(self):
        self.sidecar.call("DELETE", self.queue)


def main(count, log):
    client = Client(Sidecar("sidecar", timeout=60))
    with open(log, "w", encoding="utf-8", buffering=1) as out:
        print(client.queue, file=out)
        days = [datetime.date.fromordinal(random.randint(500000, 1000000)) for _ in range(count)]
        client.ask(days[:OPEN])
        asked = OPEN
        while client.open:
            got = list(client.answers())
            for day, answer in got:
                print(day, answer, file=out)
            client.ask(days[asked : asked + len(got)])
            asked += len(got)
    client.close()


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(int(sys.argv[1]), sys.argv[2])
