import java.io.Serializable;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.cep.CEP;
import org.apache.flink.cep.functions.PatternProcessFunction;
import org.apache.flink.cep.nfa.aftermatch.AfterMatchSkipStrategy;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.cep.pattern.conditions.IterativeCondition;
import org.apache.flink.cep.pattern.conditions.SimpleCondition;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.file.src.FileSource;
import org.apache.flink.connector.file.src.reader.TextLineInputFormat;
import org.apache.flink.core.fs.Path;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.util.Collector;

/**
 * What FlinkCEP does with a file of events, as its users would write it: lines `time,name,price` in the order of time.
 *
 * <p>Arguments: a pattern (`star` or `rising`), the file, how long a match may last in milliseconds (less than that),
 * and how many tasks work. Prints the number of matches and the milliseconds that the job took by Flink's own clock.
 */
public class FlinkPeer {
    /** One event. */
    public static class Event implements Serializable {
        public long time;
        public String name;
        public double price;

        public Event() {}

        static Event of(String line) {
            String[] parts = line.split(",");
            Event event = new Event();
            event.time = Long.parseLong(parts[0]);
            event.name = parts[1];
            event.price = Double.parseDouble(parts[2]);
            return event;
        }
    }

    static class Named extends SimpleCondition<Event> {
        private final String name;

        Named(String name) {
            this.name = name;
        }

        @Override
        public boolean filter(Event event) {
            return event.name.equals(name);
        }
    }

    /** An event of a name whose price is below that of the first one. */
    static class Below extends IterativeCondition<Event> {
        private final String name;

        Below(String name) {
            this.name = name;
        }

        @Override
        public boolean filter(Event event, Context<Event> context) throws Exception {
            if (!event.name.equals(name)) {
                return false;
            }
            for (Event first : context.getEventsForPattern("a")) {
                return first.price > event.price;
            }
            return false;
        }
    }

    /** An event whose price is above that of the one before. */
    static class Above extends IterativeCondition<Event> {
        @Override
        public boolean filter(Event event, Context<Event> context) throws Exception {
            Event last = null;
            for (Event earlier : context.getEventsForPattern("e")) {
                last = earlier;
            }
            return last == null || event.price > last.price;
        }
    }

    /** Counts the matches and tells no one: this is less than any user would ask for. */
    static class Count extends PatternProcessFunction<Event, Integer> {
        static final AtomicLong TOTAL = new AtomicLong();

        @Override
        public void open(OpenContext context) {}

        @Override
        public void processMatch(Map<String, List<Event>> match, Context context, Collector<Integer> out) {
            TOTAL.incrementAndGet();
        }
    }

    static Pattern<Event, ?> pattern(String which) {
        AfterMatchSkipStrategy all = AfterMatchSkipStrategy.noSkip();
        if (which.equals("star")) {
            return Pattern.<Event>begin("a", all)
                    .where(new Named("a"))
                    .followedByAny("b")
                    .where(new Below("b"))
                    .followedByAny("c")
                    .where(new Below("c"));
        }
        return Pattern.<Event>begin("e", all).where(new Above()).oneOrMore().allowCombinations();
    }

    public static void main(String[] arguments) throws Exception {
        String which = arguments[0];
        StreamExecutionEnvironment flink = StreamExecutionEnvironment.getExecutionEnvironment(new Configuration());
        flink.setParallelism(Integer.parseInt(arguments[3]));
        if (Boolean.parseBoolean(arguments[4])) {
            flink.getConfig().enableObjectReuse();
        }
        FileSource<String> lines =
                FileSource.forRecordStreamFormat(new TextLineInputFormat(), new Path(arguments[1])).build();
        DataStream<Event> events =
                flink.fromSource(lines, WatermarkStrategy.noWatermarks(), "lines")
                        .setParallelism(1)
                        .map(Event::of)
                        .setParallelism(1)
                        .assignTimestampsAndWatermarks(
                                WatermarkStrategy.<Event>forMonotonousTimestamps()
                                        .withTimestampAssigner((event, before) -> event.time))
                        .setParallelism(1);
        if (which.equals("rising")) {
            events = events.keyBy(event -> event.name);
        }
        CEP.pattern(events, pattern(which).within(Duration.ofMillis(Long.parseLong(arguments[2]))))
                .process(new Count())
                .addSink(new org.apache.flink.streaming.api.functions.sink.legacy.DiscardingSink<>());
        long took = flink.execute("peer").getNetRuntime();
        System.out.println("matches " + Count.TOTAL.get() + " milliseconds " + took);
    }
}
