#!/usr/bin/env python3
"""The newsroom: publishes news to the topic "news" with nothing but Python's standard library.

usage: publish.py COUNT LOG

HTTP is the path of the sidecar's unix socket. What was published is written to LOG, one news a line, once it was answered, with
the number that the topic gave it.
"""

import http.client
import json
import os
import random
import socket
import sys
import time

SUBJECTS = ["politics", "markets", "sport", "weather", "breaking/politics", "breaking/markets"]
REGIONS = ["EU", "AS", "AF", "NA", "SA", None]  # None: it is not said


class Sidecar(http.client.HTTPConnection):
    """HTTP over a unix socket."""

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.connect(os.environ["HTTP"])


def write(number, chance):
    """One news. The newsroom knows the topic and nobody behind it: what it says about a news are properties."""
    subject, region, priority = chance.choice(SUBJECTS), chance.choice(REGIONS), chance.randint(1, 9)
    if number % 13 == 0:
        subject, priority = "sport", "9"  # one desk writes its priorities as text
    properties = {"priority": priority}
    if region:
        properties["region"] = region
    text = "news %d: %s from %s" % (number, subject, region or "somewhere")
    return {"subject": subject, "text": text, "properties": properties}


def publish(sidecar, news):
    """Sends to the topic. All copies for all subscriptions are there when it returns."""
    sidecar.request("POST", "/v1/topics/news/messages:send", json.dumps({"messages": [news]}))
    response = sidecar.getresponse()
    answer = json.load(response)
    if response.status != 200:
        sys.exit("publish.py: %s: %s" % (answer["reason"], answer["message"]))
    return int(answer["results"][0]["sequenceNumber"])


def main(count, log):
    sidecar, chance = Sidecar("sidecar", timeout=30), random.Random(7)
    with open(log, "w", encoding="utf-8") as published:
        for number in range(1, count + 1):
            news = write(number, chance)
            news["number"] = publish(sidecar, news)
            published.write(json.dumps(news) + "\n")
            published.flush()
            time.sleep(0.005)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(int(sys.argv[1]), sys.argv[2])
