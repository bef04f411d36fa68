import java.io.Serializable;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.cep.CEP;
import org.apache.flink.cep.PatternStream;
import org.apache.flink.cep.functions.PatternProcessFunction;
import org.apache.flink.cep.nfa.aftermatch.AfterMatchSkipStrategy;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.cep.pattern.conditions.IterativeCondition;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.file.src.FileSource;
import org.apache.flink.connector.file.src.reader.TextLineInputFormat;
import org.apache.flink.core.fs.Path;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.util.Collector;

/**
 * Pairs of a symbol whose price falls by a third within two seconds, over files that keep arriving in a directory.
 *
 * <p>Arguments: the directory, `watermark` (one second behind) or `early` (as events arrive), and how many tasks work.
 * Files have lines `time,id,name,price`, in milliseconds. Prints the id of the last event of each match.
 */
public class FlinkLatency {
    /** One event. */
    public static class Event implements Serializable {
        public long time;
        public long id;
        public String name;
        public double price;

        public Event() {}

        static Event of(String line) {
            String[] parts = line.split(",");
            Event event = new Event();
            event.time = Long.parseLong(parts[0]);
            event.id = Long.parseLong(parts[1]);
            event.name = parts[2];
            event.price = Double.parseDouble(parts[3]);
            return event;
        }
    }

    /** An event whose price is below two thirds of that of the first one. */
    static class Below extends IterativeCondition<Event> {
        @Override
        public boolean filter(Event event, Context<Event> context) throws Exception {
            for (Event first : context.getEventsForPattern("a")) {
                return first.price > 1.5 * event.price;
            }
            return false;
        }
    }

    /** Tells each match as soon as it is found. */
    static class Tell extends PatternProcessFunction<Event, Integer> {
        @Override
        public void processMatch(Map<String, List<Event>> match, Context context, Collector<Integer> out) {
            System.out.println(match.get("b").get(0).id);
        }
    }

    public static void main(String[] arguments) throws Exception {
        boolean early = arguments[1].equals("early");
        StreamExecutionEnvironment flink = StreamExecutionEnvironment.getExecutionEnvironment(new Configuration());
        flink.setParallelism(Integer.parseInt(arguments[2]));
        FileSource<String> lines =
                FileSource.forRecordStreamFormat(new TextLineInputFormat(), new Path(arguments[0]))
                        .monitorContinuously(Duration.ofMillis(50))
                        .build();
        DataStream<Event> events =
                flink.fromSource(lines, WatermarkStrategy.noWatermarks(), "lines")
                        .setParallelism(1)
                        .map(Event::of)
                        .setParallelism(1);
        if (!early) {
            events =
                    events.assignTimestampsAndWatermarks(
                                    WatermarkStrategy.<Event>forBoundedOutOfOrderness(Duration.ofSeconds(1))
                                            .withTimestampAssigner((event, before) -> event.time))
                            .setParallelism(1);
        }
        Pattern<Event, ?> pair =
                Pattern.<Event>begin("a", AfterMatchSkipStrategy.noSkip())
                        .followedByAny("b")
                        .where(new Below())
                        .within(Duration.ofMillis(2001));
        PatternStream<Event> found = CEP.pattern(events.keyBy(event -> event.name), pair);
        (early ? found.inProcessingTime() : found.inEventTime())
                .process(new Tell())
                .addSink(new org.apache.flink.streaming.api.functions.sink.legacy.DiscardingSink<>());
        flink.execute("latency");
    }
}
