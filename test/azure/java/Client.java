import com.azure.core.amqp.AmqpRetryOptions;
import com.azure.core.util.BinaryData;
import com.azure.messaging.servicebus.ServiceBusClientBuilder;
import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusMessageBatch;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.ServiceBusSenderClient;
import com.azure.messaging.servicebus.ServiceBusSessionReceiverClient;
import com.azure.messaging.servicebus.ServiceBusTransactionContext;
import com.azure.messaging.servicebus.models.AbandonOptions;
import com.azure.messaging.servicebus.models.CompleteOptions;
import com.azure.messaging.servicebus.models.DeadLetterOptions;
import com.azure.messaging.servicebus.models.ServiceBusReceiveMode;
import com.azure.messaging.servicebus.models.SubQueue;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/**
 * Uses the official SDK of Azure Service Bus for Java against the sidecar whose connection string is the argument. The
 * test has created the entities. Each check has its own, so all run at the same time. The program fails if one does.
 */
public class Client {
  static final Duration PATIENCE = Duration.ofSeconds(30);
  static final Duration BRIEFLY = Duration.ofMillis(500);

  static String connectionString;

  interface Check {
    void run() throws Exception;
  }

  static void equal(Object got, Object want) {
    if (!Objects.equals(got, want)) {
      throw new AssertionError("got " + got + ", want " + want);
    }
  }

  static void fails(String want, Check call) throws Exception {
    try {
      call.run();
    } catch (RuntimeException failure) {
      if (!String.valueOf(failure).contains(want)) {
        throw new AssertionError("failed, but not with " + want, failure);
      }
      return;
    }
    throw new AssertionError("did not fail with " + want);
  }

  static ServiceBusClientBuilder builder() {
    return new ServiceBusClientBuilder().connectionString(connectionString)
        .retryOptions(new AmqpRetryOptions().setMaxRetries(2).setDelay(Duration.ofMillis(100)));
  }

  static ServiceBusSenderClient sender(String queue) {
    return builder().sender().queueName(queue).buildClient();
  }

  static ServiceBusReceiverClient receiver(String queue) {
    return builder().receiver().queueName(queue).disableAutoComplete().maxAutoLockRenewDuration(Duration.ZERO)
        .buildClient();
  }

  static ServiceBusSessionReceiverClient sessionReceiver() {
    return builder().sessionReceiver().queueName("sessions").disableAutoComplete()
        .maxAutoLockRenewDuration(Duration.ZERO).buildClient();
  }

  static ServiceBusReceiverClient deadLetters(String queue) {
    return builder().receiver().queueName(queue).subQueue(SubQueue.DEAD_LETTER_QUEUE).disableAutoComplete()
        .maxAutoLockRenewDuration(Duration.ZERO).buildClient();
  }

  static List<ServiceBusReceivedMessage> take(ServiceBusReceiverClient receiver, int count) {
    List<ServiceBusReceivedMessage> all = new ArrayList<>();
    long until = System.nanoTime() + PATIENCE.toNanos();
    while (all.size() < count) {
      if (System.nanoTime() > until) {
        throw new AssertionError("only " + all.size() + " of " + count + " messages came");
      }
      receiver.receiveMessages(count - all.size(), PATIENCE).forEach(all::add);
    }
    return all;
  }

  static ServiceBusReceivedMessage one(ServiceBusReceiverClient receiver) {
    return take(receiver, 1).get(0);
  }

  static List<String> bodies(Iterable<ServiceBusReceivedMessage> messages) {
    List<String> all = new ArrayList<>();
    messages.forEach(m -> all.add(m.getBody().toString()));
    return all;
  }

  static void sendAndReceive() {
    try (ServiceBusSenderClient sender = sender("messages"); ServiceBusReceiverClient receiver = receiver("messages")) {
      ServiceBusMessage sent = new ServiceBusMessage(BinaryData.fromString("hello")).setMessageId("m").setSubject("s")
          .setCorrelationId("c").setContentType("text/x").setTo("t").setReplyTo("r").setReplyToSessionId("rs")
          .setPartitionKey("p").setTimeToLive(Duration.ofHours(1));
      sent.getApplicationProperties().putAll(Map.of("text", "a", "number", 7, "long", 8L, "ratio", 0.5, "flag", true));
      sender.sendMessage(sent);
      ServiceBusReceivedMessage m = one(receiver);
      equal(List.of(m.getBody().toString(), m.getMessageId(), m.getSubject(), m.getCorrelationId(), m.getContentType()),
          List.of("hello", "m", "s", "c", "text/x"));
      equal(List.of(m.getTo(), m.getReplyTo(), m.getReplyToSessionId(), m.getPartitionKey(), m.getTimeToLive()),
          List.of("t", "r", "rs", "p", Duration.ofHours(1)));
      equal(List.of(m.getSequenceNumber(), m.getDeliveryCount()), List.of(1L, 0L));
      equal(m.getApplicationProperties(), sent.getApplicationProperties());
      receiver.complete(m);
      equal(bodies(receiver.receiveMessages(1, BRIEFLY)), List.of());
    }
  }

  static void batches() {
    try (ServiceBusSenderClient sender = sender("batches"); ServiceBusReceiverClient receiver = receiver("batches")) {
      ServiceBusMessageBatch batch = sender.createMessageBatch();
      List<String> want = IntStream.range(0, 30).mapToObj(Integer::toString).collect(Collectors.toList());
      want.forEach(text -> batch.tryAddMessage(new ServiceBusMessage(text)));
      sender.sendMessages(batch);
      List<ServiceBusReceivedMessage> all = take(receiver, 30);
      equal(bodies(all), want);
      all.forEach(receiver::complete);
    }
  }

  static void schedules() {
    try (ServiceBusSenderClient sender = sender("scheduled"); ServiceBusReceiverClient receiver = receiver("scheduled")) {
      long number = sender.scheduleMessage(new ServiceBusMessage("later"), OffsetDateTime.now().plusHours(1));
      equal(bodies(receiver.peekMessages(5, 0)), List.of("later"));
      sender.cancelScheduledMessage(number);
      equal(bodies(receiver.peekMessages(5, 0)), List.of());
      sender.sendMessage(new ServiceBusMessage("soon").setScheduledEnqueueTime(OffsetDateTime.now().plusSeconds(1)));
      ServiceBusReceivedMessage m = one(receiver);
      equal(m.getBody().toString(), "soon");
      receiver.complete(m);
    }
  }

  static void settlements() {
    try (ServiceBusSenderClient sender = sender("settled"); ServiceBusReceiverClient receiver = receiver("settled");
        ServiceBusReceiverClient dead = deadLetters("settled")) {
      sender.sendMessage(new ServiceBusMessage("x"));
      receiver.abandon(one(receiver), new AbandonOptions().setPropertiesToModify(Map.of("tried", "once")));
      ServiceBusReceivedMessage m = one(receiver);
      equal(List.of(m.getDeliveryCount(), m.getApplicationProperties().get("tried")), List.of(1L, "once"));
      receiver.defer(m);
      m = receiver.receiveDeferredMessage(m.getSequenceNumber());
      receiver.deadLetter(m, new DeadLetterOptions().setDeadLetterReason("why").setDeadLetterErrorDescription("because"));
      m = one(dead);
      equal(List.of(m.getBody().toString(), m.getDeadLetterReason(), m.getDeadLetterErrorDescription()),
          List.of("x", "why", "because"));
      dead.complete(m);
      sender.sendMessage(new ServiceBusMessage("y"));
      receiver.deadLetter(one(receiver)); // over the link of the receiver
      dead.complete(one(dead));
    }
  }

  static void receiveAndDelete() {
    try (ServiceBusSenderClient sender = sender("deleted")) {
      sender.sendMessages(List.of(new ServiceBusMessage("1"), new ServiceBusMessage("2")));
    }
    try (ServiceBusReceiverClient receiver = builder().receiver().queueName("deleted")
        .receiveMode(ServiceBusReceiveMode.RECEIVE_AND_DELETE).disableAutoComplete().buildClient()) {
      equal(bodies(take(receiver, 2)), List.of("1", "2"));
      equal(bodies(receiver.peekMessages(5, 0)), List.of());
    }
  }

  /** Locks last 5 s here. */
  static void locks() throws Exception {
    try (ServiceBusSenderClient sender = sender("short"); ServiceBusReceiverClient receiver = receiver("short")) {
      sender.sendMessage(new ServiceBusMessage("x"));
      ServiceBusReceivedMessage m = one(receiver);
      OffsetDateTime before = m.getLockedUntil();
      if (!receiver.renewMessageLock(m).isAfter(before)) {
        throw new AssertionError("not renewed");
      }
      ServiceBusReceivedMessage again = one(receiver); // when the lock has ended
      equal(again.getDeliveryCount(), 1L);
      fails("lock", () -> receiver.complete(m));
      receiver.complete(again);
    }
  }

  static void sessions() throws Exception {
    try (ServiceBusSenderClient sender = sender("sessions")) {
      sender.sendMessages(List.of(
          new ServiceBusMessage("1").setSessionId("a"), new ServiceBusMessage("2").setSessionId("b")));
    }
    try (ServiceBusReceiverClient a = sessionReceiver().acceptSession("a")) {
      equal(List.of(a.getSessionId(), a.getSessionState() == null), List.of("a", true));
      a.setSessionState(new byte[] {1});
      equal(a.getSessionState().length, 1);
      a.renewSessionLock();
      a.complete(one(a));
      fails("locked", () -> sessionReceiver().acceptSession("a").receiveMessages(1, BRIEFLY).forEach(m -> { }));
      try (ServiceBusReceiverClient next = sessionReceiver().acceptNextSession()) {
        equal(next.getSessionId(), "b");
        next.complete(one(next));
      }
    }
  }

  /** The subscription "sql" has region = 'eu' with an action, "correlation" has the subject x. */
  static void topics() {
    try (ServiceBusSenderClient sender = builder().sender().topicName("news").buildClient()) {
      Stream.of("us", "eu").forEach(region -> {
        ServiceBusMessage m = new ServiceBusMessage(region);
        m.getApplicationProperties().put("region", region);
        sender.sendMessage(m);
      });
      sender.sendMessage(new ServiceBusMessage("x").setSubject("x"));
    }
    Map.of("all", List.of("us", "eu", "x"), "sql", List.of("eu"), "correlation", List.of("x")).forEach((name, want) -> {
      try (ServiceBusReceiverClient receiver = builder().receiver().topicName("news").subscriptionName(name)
          .disableAutoComplete().maxAutoLockRenewDuration(Duration.ZERO).buildClient()) {
        List<ServiceBusReceivedMessage> all = take(receiver, want.size());
        equal(bodies(all), want);
        all.forEach(receiver::complete);
      }
    });
  }

  static void large() {
    byte[] content = new byte[900_000];
    java.util.Arrays.fill(content, (byte) 7);
    try (ServiceBusSenderClient sender = sender("large"); ServiceBusReceiverClient receiver = receiver("large")) {
      sender.sendMessage(new ServiceBusMessage(BinaryData.fromBytes(content)));
      ServiceBusReceivedMessage m = one(receiver);
      equal(java.util.Arrays.equals(m.getBody().toBytes(), content), true);
      receiver.complete(m);
    }
  }

  /** Transactions over one client, whose sender and receiver share a connection (TX-4 to TX-6). */
  static void transactions() throws Exception {
    ServiceBusClientBuilder shared = builder();
    try (ServiceBusReceiverClient receiver = shared.receiver().queueName("steps").disableAutoComplete()
            .maxAutoLockRenewDuration(Duration.ZERO).buildClient();
        ServiceBusSenderClient sender = shared.sender().queueName("steps").buildClient();
        ServiceBusSenderClient other = shared.sender().queueName("replies").buildClient();
        ServiceBusReceiverClient replies = receiver("replies")) {
      sender.sendMessage(new ServiceBusMessage("order"));
      ServiceBusReceivedMessage m = one(receiver);

      ServiceBusTransactionContext undone = sender.createTransaction();
      other.sendMessage(new ServiceBusMessage("no"), undone);
      sender.rollbackTransaction(undone);
      equal(bodies(replies.peekMessages(5, 0)), List.of());

      ServiceBusTransactionContext done = sender.createTransaction();
      other.sendMessage(new ServiceBusMessage("accepted"), done);
      sender.sendMessage(new ServiceBusMessage("next step"), done);
      receiver.complete(m, new CompleteOptions().setTransactionContext(done));
      equal(bodies(replies.peekMessages(5, 0)), List.of());
      equal(bodies(receiver.peekMessages(5, 0)), List.of("order"));
      sender.commitTransaction(done);
      equal(bodies(replies.peekMessages(5, 0)), List.of("accepted"));
      equal(bodies(receiver.peekMessages(5, 0)), List.of("next step"));
    }
  }

  static void refusals() throws Exception {
    try (ServiceBusSenderClient sender = sender("missing")) {
      fails("could not be found", () -> sender.sendMessage(new ServiceBusMessage("x")));
    }
    try (ServiceBusSenderClient sender = sender("messages")) {
      fails("exceeded maximum message size", () -> sender.sendMessage(new ServiceBusMessage(BinaryData.fromBytes(new byte[300_000]))));
    }
  }

  public static void main(String[] args) throws Exception {
    connectionString = args[0];
    Map<String, Check> checks = Map.ofEntries(
        Map.entry("sendAndReceive", Client::sendAndReceive), Map.entry("batches", Client::batches),
        Map.entry("schedules", Client::schedules), Map.entry("settlements", Client::settlements),
        Map.entry("receiveAndDelete", Client::receiveAndDelete), Map.entry("locks", Client::locks),
        Map.entry("sessions", Client::sessions), Map.entry("topics", Client::topics), Map.entry("large", Client::large),
        Map.entry("transactions", Client::transactions), Map.entry("refusals", Client::refusals));
    List<CompletableFuture<Boolean>> running = new ArrayList<>();
    checks.forEach((name, check) -> {
      if (args.length == 1 || List.of(args).contains(name)) {
        running.add(CompletableFuture.supplyAsync(() -> run(name, check), task -> new Thread(task, name).start()));
      }
    });
    boolean passed = true;
    for (CompletableFuture<Boolean> one : running) {
      passed &= one.get();
    }
    System.exit(passed ? 0 : 1);
  }

  static boolean run(String name, Check check) {
    long began = System.nanoTime();
    try {
      check.run();
      System.out.printf("%s: %.1f s%n", name, (System.nanoTime() - began) / 1e9);
      return true;
    } catch (Throwable failure) {
      synchronized (System.out) {
        System.out.printf("%s failed after %.1f s:%n", name, (System.nanoTime() - began) / 1e9);
        failure.printStackTrace(System.out);
      }
      return false;
    }
  }
}
