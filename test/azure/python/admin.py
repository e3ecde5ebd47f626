"""Uses the administration client of the official SDK for Python against the sidecar whose connection string is the
first argument. The second one is the authority to trust. A check that fails ends it with an error."""

import sys
from datetime import datetime, timedelta, timezone

from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceNotFoundError
from azure.servicebus.management import (
    CorrelationRuleFilter,
    FalseRuleFilter,
    ServiceBusAdministrationClient,
    SqlRuleAction,
    SqlRuleFilter,
    TrueRuleFilter,
)

client = ServiceBusAdministrationClient.from_connection_string(sys.argv[1], connection_verify=sys.argv[2])


def same(got, want):
    assert got == want, f"got {got!r}, want {want!r}"


def fails(kind, call):
    try:
        call()
    except kind as failure:
        return failure
    raise AssertionError(f"it does not fail with {kind}")


def queues():
    client.create_queue("dead")
    made = client.create_queue(
        "py/q", lock_duration=timedelta(seconds=45), max_delivery_count=4, requires_session=True,
        default_message_time_to_live="P7D", user_metadata="<m & 'n'>", forward_dead_lettered_messages_to="dead",
    )
    same([made.name, made.lock_duration, made.max_delivery_count], ["py/q", timedelta(seconds=45), 4])
    same([made.requires_session, made.user_metadata, made.status], [True, "<m & 'n'>", "Active"])
    same(made.default_message_time_to_live, timedelta(days=7))
    assert made.forward_dead_lettered_messages_to.endswith("/dead")
    got = client.get_queue("py/q")
    same(got.lock_duration, made.lock_duration)
    got.lock_duration = timedelta(seconds=20)
    got.status = "SendDisabled"
    client.update_queue(got)
    got = client.get_queue("py/q")
    same([got.lock_duration, got.status, got.max_delivery_count], [timedelta(seconds=20), "SendDisabled", 4])
    runtime = client.get_queue_runtime_properties("py/q")
    same([runtime.total_message_count, runtime.active_message_count, runtime.size_in_bytes], [0, 0, 0])
    assert runtime.created_at_utc <= datetime.now(timezone.utc)
    for i in range(5):
        client.create_queue(f"page-{i}")
    same([q.name for q in client.list_queues(max_page_size=3)], ["dead"] + [f"page-{i}" for i in range(5)] + ["py/q"])
    same(len(list(client.list_queues_runtime_properties())), 7)
    fails(ResourceExistsError, lambda: client.create_queue("py/q"))
    fails(ResourceNotFoundError, lambda: client.get_queue("no"))
    fails(ResourceNotFoundError, lambda: client.delete_queue("no"))
    fails(HttpResponseError, lambda: client.create_queue("x", lock_duration=timedelta(hours=1)))
    client.delete_queue("py/q")


def topics():
    client.create_topic("news", user_metadata="m")
    topic = client.get_topic("news")
    same([topic.user_metadata, topic.support_ordering, topic.max_size_in_megabytes], ["m", True, 1024])
    topic.user_metadata = "n"
    client.update_topic(topic)
    same(client.get_topic("news").user_metadata, "n")
    client.create_subscription("news", "all", max_delivery_count=3)
    subscription = client.get_subscription("news", "all")
    same([subscription.name, subscription.max_delivery_count], ["all", 3])
    subscription.lock_duration = timedelta(seconds=10)
    client.update_subscription("news", subscription)
    same(client.get_subscription("news", "all").lock_duration, timedelta(seconds=10))
    same(client.get_subscription_runtime_properties("news", "all").active_message_count, 0)
    same([s.name for s in client.list_subscriptions("news")], ["all"])
    same(client.get_topic_runtime_properties("news").subscription_count, 1)
    same([t.name for t in client.list_topics()], ["news"])
    fails(ResourceNotFoundError, lambda: client.get_subscription("news", "no"))


def rules():
    values = {
        "text": "<a>", "number": 7, "large": 1 << 40, "ratio": 0.5, "flag": True,
        "at": datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc), "span": timedelta(minutes=1, seconds=30),
    }
    client.create_rule("news", "all", "correlation", filter=CorrelationRuleFilter(label="s", properties=values))
    made = client.get_rule("news", "all", "correlation")
    same([made.filter.label, made.filter.properties], ["s", values])
    client.create_rule(
        "news", "all", "sql", filter=SqlRuleFilter("n > @n", parameters={"@n": 5}),
        action=SqlRuleAction("SET a = @a", parameters={"@a": "b"}),
    )
    made = client.get_rule("news", "all", "sql")
    same([made.filter.sql_expression, made.filter.parameters], ["n > @n", {"@n": 5}])
    same([made.action.sql_expression, made.action.parameters], ["SET a = @a", {"@a": "b"}])
    made.filter = FalseRuleFilter()
    made.action = None
    client.update_rule("news", "all", made)
    made = client.get_rule("news", "all", "sql")
    assert isinstance(made.filter, FalseRuleFilter) and made.action is None, made
    assert isinstance(client.get_rule("news", "all", "$Default").filter, TrueRuleFilter)
    same([r.name for r in client.list_rules("news", "all")], ["$Default", "correlation", "sql"])
    client.delete_rule("news", "all", "$Default")
    fails(ResourceNotFoundError, lambda: client.get_rule("news", "all", "$Default"))
    fails(ResourceExistsError, lambda: client.create_rule("news", "all", "sql"))


queues()
topics()
rules()
same(client.get_namespace_properties().messaging_sku, "Standard")
client.delete_subscription("news", "all")
client.delete_topic("news")
fails(ResourceNotFoundError, lambda: client.get_topic("news"))
