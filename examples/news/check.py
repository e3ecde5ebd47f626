#!/usr/bin/env python3
"""Compares what each subscription got with what its rules say, in other words: in Python.

usage: check.py FOLDER BEFORE AFTER

FOLDER has "published", what each reader printed, and "audit.peek". The subscription sport was made when BEFORE news were published and
AFTER of them when that was answered.
"""

import collections
import glob
import json
import os
import sys


# What the rules of session.sh say, of subject, region and priority. A priority that is a text is no number.
WANTS = {
    "europe": lambda s, r, p: r == "EU",
    "breaking": lambda s, r, p: isinstance(p, int) and p >= 8 or s.startswith("breaking/"),
    "asia-and-markets": lambda s, r, p: r == "AS" or s == "markets",
    "digest": lambda s, r, p: isinstance(p, int) and p < 8 and r is not None,
    "sport": lambda s, r, p: s == "sport",
    "audit": lambda s, r, p: True,
}


def lines(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def selected(published, wants):
    """The numbers of the news that somebody wants."""
    numbers = []
    for news in published:
        properties = news["properties"]
        if wants(news["subject"], properties.get("region"), properties["priority"]):
            numbers.append(news["number"])
    return numbers


def demand(holds, what, *details):
    if not holds:
        sys.exit("check.py: " + what % details)


def check_digest(published, digest):
    """Its copies are changed by the action, and only its."""
    regions = {news["number"]: news["properties"].get("region") for news in published}
    for news in digest:
        edition = regions[news["number"]] + " evening"
        got = (news["ruleName"], news["edition"], news["timeToLive"])
        demand(got == ("evening", edition, "12h0m0s"), "digest: news %d is %s", news["number"], got)


def check_audit(published, audit):
    """It has the news as they were sent: no action of somebody else shows."""
    for was, news in zip(published, audit):
        got = {"subject": news["subject"], "text": news["text"], "properties": news["properties"], "number": was["number"]}
        demand(got == was, "audit: got %s, want %s", got, was)
        demand("timeToLive" not in news, "audit: news %d has a time to live", was["number"])
    demand(len(audit) == len(published), "audit has %d of %d", len(audit), len(published))


def check_sport(got, want, before, after):
    """It has what was sent after it was made. One news may have been under way just then, which may be in or not."""
    demand(not [n for n in got if n <= before], "sport got news from before it was there")
    since = [n for n in want if n > after + 1 or n in got]
    demand(0 < len(since) < len(want), "sport was not made while news flowed")
    return since, "created after item %d: %d of %d about sport" % (before, len(since), len(want))


def check(name, folder, published, before, after):
    """Compares one subscription and gives what to say about it."""
    want = selected(published, WANTS[name])
    if name == "audit":
        papers = [lines(os.path.join(folder, "audit.peek"))]
        check_audit(published, papers[0])
        got, note = [int(news["enqueuedSequenceNumber"]) for news in papers[0]], "as they were sent, and kept"
    else:
        papers = [lines(path) for path in sorted(glob.glob(os.path.join(folder, name + ".read*")))]
        got, note = sorted(news["number"] for paper in papers for news in paper), ""
    if name == "sport":
        want, note = check_sport(got, want, before, after)
    lacks, more = collections.Counter(want) - collections.Counter(got), collections.Counter(got) - collections.Counter(want)
    demand(got == want, "%s: lacks news %s and has too much %s", name, sorted(lacks), sorted(more))
    if name == "digest":
        check_digest(published, papers[0])
        note = "each has an edition, which no other copy has"
    else:
        changed = [news for paper in papers for news in paper if news.get("ruleName") or news.get("edition")]
        demand(not changed, "%s: got %s, which an action changed", name, changed)
    if len(papers) > 1:
        demand(all(papers), "%s: a reader got nothing", name)
        note = "its readers got " + " and ".join(str(len(paper)) for paper in papers)
    return len(got), note


def main(folder, before, after):
    published = lines(os.path.join(folder, "published"))
    count = len(published)
    demand([news["number"] for news in published] == list(range(1, count + 1)), "the topic's numbers have gaps")
    for name in WANTS:
        got, note = check(name, folder, published, before, after)
        print(("%-17s %3d of %d  %s" % (name, got, count, note)).rstrip())
    print("each subscription got exactly the items that its rules select, each item once")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
