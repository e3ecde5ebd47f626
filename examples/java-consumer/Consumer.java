import java.io.IOException;
import java.math.BigDecimal;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;

/** A Sidebus consumer that needs nothing but a JDK, version 17 or later. It runs from its source. */
public class Consumer {
    static final String USAGE = """
        usage: java Consumer.java QUEUE [--until-empty]

        SIDEBUS_URL is the address of the sidecar; the default is http://127.0.0.1:7420. The program asks the queue
        whether it has sessions and consumes it accordingly. --until-empty ends the program when nothing is available.
        SIGTERM and Ctrl-C finish the current message, release the others and end the program.""";

    static final String URL = System.getenv().getOrDefault("SIDEBUS_URL", "http://127.0.0.1:7420");
    static final int WAIT = 5; // seconds that a receive waits; a stop takes that long at most, plus the current message
    static final int BATCH = 10; // messages a receive may return; all of them stay locked until it is their turn
    static final String RETRY_DELAY = "2s"; // how long an abandoned message stays invisible
    static final int GRACE = 10; // seconds after a stop in which a failed call is still repeated

    static volatile long stopTime; // when the program was told to stop, of System.nanoTime; 0 before

    /**
     * Replace this with your work. It may run twice for one message, so make it safe to repeat.
     *
     * If it returns, the message is completed. If it throws BadMessage, the message is dead-lettered. If it throws
     * anything else, the message is abandoned and comes again after RETRY_DELAY. This one follows the message's
     * properties.
     */
    static void handle(Map<String, Object> message) throws Exception {
        Map<String, Object> properties = Json.object(message.get("properties"));
        if (properties.get("seconds") instanceof BigDecimal seconds) {
            Thread.sleep(seconds.movePointRight(3).longValue());
        }
        if ("always".equals(properties.get("fail"))) {
            throw new BadMessage("NotWanted", "the property fail is always");
        }
        if ("once".equals(properties.get("fail")) && message.get("deliveryCount").equals(BigDecimal.ONE)) {
            throw new IllegalStateException("the property fail is once");
        }
        System.out.println(message.get("sequenceNumber") + " " + content(message));
    }

    /** Returns the body as its sender sent it: text, JSON or bytes. Over HTTP, JSON is part of the answer. */
    static Object content(Map<String, Object> message) {
        if (message.containsKey("text")) {
            return message.get("text");
        }
        if (message.containsKey("json")) {
            return Json.write(message.get("json"));
        }
        return Base64.getDecoder().decode((String) message.get("body")).length + " bytes";
    }

    /** The message can never be processed. */
    static class BadMessage extends Exception {
        final String reason;

        BadMessage(String reason, String description) {
            super(description);
            this.reason = reason;
        }
    }

    /** The sidecar refused a call. Decide by the reason, never by the text. */
    static class Refused extends IOException {
        final String reason;
        final boolean retryable;
        final long retryAfterMs;

        Refused(Map<String, Object> answer) {
            super(answer.get("reason") + ": " + answer.get("message"));
            reason = (String) answer.get("reason");
            retryable = (boolean) answer.get("retryable");
            retryAfterMs = ((BigDecimal) answer.get("retryAfterMs")).longValue();
        }
    }

    static final HttpClient HTTP = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();

    /** Makes one call: a POST, or a GET without a body. The timeout must be longer than the wait. */
    static Map<String, Object> callOnce(String path, Map<String, ?> body, int wait)
            throws IOException, InterruptedException {
        var request = HttpRequest.newBuilder(URI.create(URL + path)).timeout(Duration.ofSeconds(wait + 10));
        if (body != null) {
            request.header("Content-Type", "application/json");
            request.POST(HttpRequest.BodyPublishers.ofString(Json.write(body)));
        }
        var response = HTTP.send(request.build(), BodyHandlers.ofString());
        Map<String, Object> answer = Json.object(Json.parse(response.body()));
        if (response.statusCode() != 200) {
            throw new Refused(answer);
        }
        return answer;
    }

    /**
     * Makes a call and repeats it with growing pauses while that may help. A call that waits is not repeated after a
     * stop; it returns an empty answer.
     */
    static Map<String, Object> call(String path, Map<String, ?> body, int wait)
            throws IOException, InterruptedException {
        for (double pause = 100;; pause = Math.min(2 * pause, 5000)) {
            try {
                return callOnce(path, body, wait);
            } catch (IOException error) { // no answer, or half of one
                long least = 0;
                if (error instanceof Refused refused) { // THROTTLED and STORE_UNAVAILABLE are retryable, for example
                    if (!refused.retryable) {
                        throw refused;
                    }
                    least = refused.retryAfterMs;
                }
                if (stopTime != 0 && wait > 0) {
                    return Map.of();
                }
                if (stopTime != 0 && System.nanoTime() - stopTime > TimeUnit.SECONDS.toNanos(GRACE)) {
                    throw error;
                }
                log(error + "; next try follows");
                Thread.sleep(Math.max(least, (long) (pause * (0.5 + Math.random() / 2))));
            }
        }
    }

    /** A call that renews locks. */
    interface Call {
        void run() throws IOException, InterruptedException;
    }

    /** Makes a call every few seconds in the background until it is closed. */
    static class Renewal implements AutoCloseable {
        final ScheduledExecutorService timer = Executors.newSingleThreadScheduledExecutor();

        Renewal(Call renew, long everyMs) {
            timer.scheduleAtFixedRate(() -> {
                try {
                    renew.run();
                } catch (IOException error) { // there is time for another one before the lock expires
                    if (!timer.isShutdown()) {
                        log("renewal: " + error);
                    }
                } catch (InterruptedException error) {
                    Thread.currentThread().interrupt();
                }
            }, everyMs, everyMs, TimeUnit.MILLISECONDS);
        }

        @Override
        public void close() {
            timer.shutdown();
        }
    }

    final String path;
    final boolean hasSessions;
    final long renewEveryMs;

    Consumer(String queue) throws IOException, InterruptedException {
        path = "/v1/queues/" + URLEncoder.encode(queue, StandardCharsets.UTF_8).replace("+", "%20");
        Map<String, Object> options = call(path, null, 0);
        hasSessions = (boolean) options.get("requiresSession");
        String lockDuration = (String) options.get("lockDuration"); // such as 30s
        renewEveryMs = (long) (1000 * Double.parseDouble(lockDuration.replace("s", "")) / 3);
    }

    /** Consumes until the program is told to stop or, without a wait, until nothing is available. */
    void run(int wait) throws IOException, InterruptedException {
        boolean some = true;
        while (stopTime == 0 && (some || wait > 0)) {
            some = hasSessions ? nextSession(wait) : nextBatch(wait);
        }
    }

    // A queue without sessions: a batch of messages, each with a lock of its own.

    boolean nextBatch(int wait) throws IOException, InterruptedException {
        var messages = receive(wait, Map.of("maxMessages", BATCH));
        var held = new ConcurrentHashMap<String, Map<String, Object>>();
        for (var message : messages) {
            held.put((String) message.get("lockToken"), message);
        }
        Call renew = () -> {
            var answer = callOnce(path + "/messages:renewLocks", Map.of("lockTokens", List.copyOf(held.keySet())), 0);
            for (var row : Json.objects(answer.get("results"))) {
                if (row.containsKey("reason")) {
                    // The lock expired: another consumer may have the message.
                    held.remove((String) row.get("lockToken"));
                }
            }
        };
        try (var renewal = new Renewal(renew, renewEveryMs)) {
            for (var message : messages) {
                if (stopTime != 0) {
                    break;
                }
                if (held.containsKey((String) message.get("lockToken"))) {
                    if (process(message, null)) {
                        settle("complete", List.of(message), Map.of());
                    }
                    held.remove((String) message.get("lockToken"));
                }
            }
        }
        if (!held.isEmpty()) {
            settle("release", List.copyOf(held.values()), Map.of());
        }
        return !messages.isEmpty();
    }

    // A queue with sessions: one lock for all messages of a session, which come in order, one at a time. One call
    // completes a message and receives the next one.

    boolean nextSession(int wait) throws IOException, InterruptedException {
        var answer = call(path + "/sessions:accept", Map.of("maxWait", wait + "s"), wait);
        if (!answer.containsKey("session")) {
            return false;
        }
        Map<String, Object> session = Json.object(answer.get("session"));
        var lock = Map.of("lockToken", session.get("lockToken"));
        try (var renewal = new Renewal(() -> callOnce(path + "/sessions:renewLock", lock, 0), renewEveryMs)) {
            processSession(session);
            renewal.close();
            call(path + "/sessions:close", lock, 0);
        } catch (Refused error) {
            if (!error.reason.equals("SESSION_LOCK_LOST")) {
                throw error;
            }
            log("session " + session.get("sessionId") + ": " + error); // another consumer may have it
        }
        return true;
    }

    void processSession(Map<String, Object> session) throws IOException, InterruptedException {
        Map<String, Object> lock = Map.of("sessionLockToken", session.get("lockToken"));
        // The state is the number of the last message whose work is done. It is bytes, in base64.
        long done = 0;
        if (session.get("state") instanceof String state) {
            done = Long.parseLong(new String(Base64.getDecoder().decode(state), StandardCharsets.UTF_8));
        }
        List<Map<String, Object>> finished = List.of(); // the message whose work is done, to be completed
        while (stopTime == 0) {
            var messages = completeAndReceive(finished, lock);
            finished = List.of();
            if (messages.isEmpty()) {
                return;
            }
            var message = messages.get(0);
            long number = Long.parseLong((String) message.get("sessionSequence")); // int64 is a string in JSON
            // If number == done, the state was set, but then the message was not completed.
            if (number == done || process(message, session)) {
                done = number;
                finished = messages;
            }
        }
        if (!finished.isEmpty()) {
            settle("complete", finished, lock);
        }
    }

    List<Map<String, Object>> completeAndReceive(List<Map<String, Object>> finished, Map<String, Object> lock)
            throws IOException, InterruptedException {
        var body = new LinkedHashMap<String, Object>(lock);
        body.put("lockTokens", tokens(finished));
        body.put("maxWait", "0s");
        var answer = call(path + "/messages:completeAndReceive", body, 0);
        report("complete", finished, answer);
        if (answer.containsKey("failure")) { // of the receive only, which repeats what may help
            return receive(0, lock);
        }
        return Json.objects(answer.get("messages"));
    }

    // Both.

    List<Map<String, Object>> receive(int wait, Map<String, ?> options) throws IOException, InterruptedException {
        var body = new LinkedHashMap<String, Object>(options);
        body.put("maxWait", wait + "s"); // without it, the receive waits for 60 s
        return Json.objects(call(path + "/messages:receive", body, wait).getOrDefault("messages", List.of()));
    }

    /** Hands a message to handle. Returns whether its work is done; if not, the message is settled. */
    boolean process(Map<String, Object> message, Map<String, Object> session) throws IOException, InterruptedException {
        var options = new LinkedHashMap<String, Object>();
        if (session != null) {
            options.put("sessionLockToken", session.get("lockToken"));
        }
        try {
            handle(message);
        } catch (BadMessage error) {
            String description = error.getMessage();
            options.put("reason", error.reason);
            options.put("description", description.substring(0, Math.min(description.length(), 4096)));
            settle("deadLetter", List.of(message), options);
            return false;
        } catch (Exception error) { // the queue's maxDeliveryCount bounds the deliveries
            log(message.get("sequenceNumber") + ": " + error);
            options.put("delay", RETRY_DELAY);
            settle("abandon", List.of(message), options);
            return false;
        }
        if (session != null) { // first the state, then complete
            byte[] number = ((String) message.get("sessionSequence")).getBytes(StandardCharsets.UTF_8);
            String state = Base64.getEncoder().encodeToString(number);
            call(path + "/sessions:setState", Map.of("lockToken", session.get("lockToken"), "state", state), 0);
        }
        return true;
    }

    /** Settles messages. A row of the answer with a reason is a message that was not settled. */
    void settle(String verb, List<Map<String, Object>> messages, Map<String, Object> options)
            throws IOException, InterruptedException {
        var body = new LinkedHashMap<String, Object>(options);
        body.put("lockTokens", tokens(messages));
        report(verb, messages, call(path + "/messages:" + verb, body, 0));
    }

    static List<Object> tokens(List<Map<String, Object>> messages) {
        return messages.stream().map(message -> message.get("lockToken")).toList();
    }

    static void report(String verb, List<Map<String, Object>> messages, Map<String, Object> answer) {
        var results = Json.objects(answer.get("results"));
        for (int i = 0; i < results.size(); i++) {
            Object reason = results.get(i).getOrDefault("reason", "done");
            log(messages.get(i).get("sequenceNumber") + " " + verb + ": " + reason);
        }
    }

    static void log(String text) {
        System.err.println(text);
    }

    public static void main(String[] args) throws Exception {
        if (args.length == 0) {
            System.err.println(USAGE);
            System.exit(1);
        }
        // SIGTERM and Ctrl-C run the hook, and the JVM ends when the hook returns, with the signal's exit code.
        Thread main = Thread.currentThread();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            stopTime = System.nanoTime() | 1;
            try {
                main.join();
            } catch (InterruptedException error) {
                Thread.currentThread().interrupt();
            }
        }));
        new Consumer(args[0]).run(args.length > 1 && args[1].equals("--until-empty") ? 0 : WAIT);
    }

    /** JSON as Map, List, String, BigDecimal, Boolean and null. Use the library of your choice instead. */
    static class Json {
        private final String text;
        private int at;

        private Json(String text) {
            this.text = text;
        }

        @SuppressWarnings("unchecked")
        static Map<String, Object> object(Object value) {
            return (Map<String, Object>) value;
        }

        static List<Map<String, Object>> objects(Object value) {
            return ((List<?>) value).stream().map(Json::object).toList();
        }

        static String write(Object value) {
            if (value instanceof Map<?, ?> map) {
                return map.entrySet().stream().map(e -> write(e.getKey()) + ":" + write(e.getValue()))
                    .collect(Collectors.joining(",", "{", "}"));
            }
            if (value instanceof List<?> list) {
                return list.stream().map(Json::write).collect(Collectors.joining(",", "[", "]"));
            }
            if (!(value instanceof String string)) {
                return String.valueOf(value);
            }
            var out = new StringBuilder("\"");
            for (char c : string.toCharArray()) {
                if (c == '"' || c == '\\') {
                    out.append('\\').append(c);
                } else if (c < ' ' || Character.isSurrogate(c)) {
                    out.append(String.format("\\u%04x", (int) c));
                } else {
                    out.append(c);
                }
            }
            return out.append('"').toString();
        }

        static Object parse(String text) throws IOException {
            try {
                return new Json(text).value();
            } catch (IndexOutOfBoundsException | NumberFormatException error) {
                throw new IOException("not JSON: " + text, error);
            }
        }

        private Object value() {
            char c = peek();
            if (c == '{') {
                var map = new LinkedHashMap<String, Object>();
                while (more('}')) {
                    String name = string();
                    peek();
                    at++; // the colon
                    map.put(name, value());
                }
                return map;
            }
            if (c == '[') {
                var list = new ArrayList<Object>();
                while (more(']')) {
                    list.add(value());
                }
                return list;
            }
            if (c == '"') {
                return string();
            }
            int begin = at;
            while (at < text.length() && ",]} \t\r\n".indexOf(text.charAt(at)) < 0) {
                at++;
            }
            String word = text.substring(begin, at);
            return switch (word) {
                case "true" -> true;
                case "false" -> false;
                case "null" -> null;
                default -> new BigDecimal(word);
            };
        }

        /** Skips white space and returns the next character. */
        private char peek() {
            while (Character.isWhitespace(text.charAt(at))) {
                at++;
            }
            return text.charAt(at);
        }

        /** Consumes an opening bracket or a comma and returns true, or the closing bracket and returns false. */
        private boolean more(char close) {
            if (peek() != close) {
                at++;
                if (peek() != close) {
                    return true;
                }
            }
            at++;
            return false;
        }

        private String string() {
            peek();
            var out = new StringBuilder();
            for (at++; text.charAt(at) != '"'; at++) {
                char c = text.charAt(at);
                if (c == '\\') {
                    c = text.charAt(++at);
                    switch (c) {
                        case 'b' -> c = '\b';
                        case 'f' -> c = '\f';
                        case 'n' -> c = '\n';
                        case 'r' -> c = '\r';
                        case 't' -> c = '\t';
                        case 'u' -> {
                            c = (char) Integer.parseInt(text.substring(at + 1, at + 5), 16);
                            at += 4;
                        }
                        default -> { } // itself
                    }
                }
                out.append(c);
            }
            at++;
            return out.toString();
        }
    }
}
