import java.util.concurrent.TimeUnit;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.table.api.TableResult;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.apache.flink.types.Row;
import org.apache.flink.util.CloseableIterator;

/**
 * What Flink SQL does with a file of events: lines `time,name,price`; prices of a name that fall, row by row, and rise.
 *
 * <p>Arguments: the file, and how many tasks work. Prints the number of matches and the milliseconds from the query to the
 * last row.
 */
public class FlinkSql {
    public static void main(String[] arguments) throws Exception {
        StreamExecutionEnvironment flink = StreamExecutionEnvironment.getExecutionEnvironment(new Configuration());
        flink.setParallelism(Integer.parseInt(arguments[1]));
        StreamTableEnvironment tables = StreamTableEnvironment.create(flink);
        tables.executeSql(
                "CREATE TABLE events (millis BIGINT, name STRING, price DOUBLE, "
                        + "moment AS TO_TIMESTAMP_LTZ(millis, 3), WATERMARK FOR moment AS moment) "
                        + "WITH ('connector' = 'filesystem', 'path' = '" + arguments[0] + "', 'format' = 'csv')");
        long begin = System.nanoTime();
        TableResult result =
                tables.executeSql(
                        "SELECT COUNT(*) FROM events MATCH_RECOGNIZE (PARTITION BY name ORDER BY moment "
                                + "MEASURES A.millis AS begun, C.millis AS ended ONE ROW PER MATCH "
                                + "AFTER MATCH SKIP TO NEXT ROW PATTERN (A B+ C) DEFINE "
                                + "B AS (LAST(B.price, 1) IS NULL AND B.price < A.price) OR B.price < LAST(B.price, 1), "
                                + "C AS C.price > LAST(B.price))");
        long matches = 0;
        try (CloseableIterator<Row> rows = result.collect()) {
            while (rows.hasNext()) {
                matches = ((Number) rows.next().getField(0)).longValue();
            }
        }
        System.out.println(matches + " matches in " + TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - begin));
    }
}
