import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.lang.reflect.Field;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

import org.apache.paimon.CoreOptions;
import org.apache.paimon.catalog.Catalog;
import org.apache.paimon.catalog.CatalogContext;
import org.apache.paimon.catalog.CatalogFactory;
import org.apache.paimon.catalog.Identifier;
import org.apache.paimon.consumer.Consumer;
import org.apache.paimon.consumer.ConsumerManager;
import org.apache.paimon.data.InternalRow;
import org.apache.paimon.iceberg.IcebergOptions;
import org.apache.paimon.options.ConfigOption;
import org.apache.paimon.options.Options;
import org.apache.paimon.predicate.Predicate;
import org.apache.paimon.predicate.PredicateBuilder;
import org.apache.paimon.reader.RecordReader;
import org.apache.paimon.schema.Schema;
import org.apache.paimon.schema.SchemaChange;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.paimon.stats.Statistics;
import org.apache.paimon.table.FileStoreTable;
import org.apache.paimon.table.Table;
import org.apache.paimon.table.source.ReadBuilder;
import org.apache.paimon.table.source.Split;
import org.apache.paimon.table.source.StreamTableScan;
import org.apache.paimon.types.DataField;
import org.apache.paimon.types.DataType;
import org.apache.paimon.types.DataTypeJsonParser;
import org.apache.paimon.types.RowType;

/** Answers one JSON request per line with what the released Paimon does, until its input ends. */
public final class Peer {
    private static final ObjectMapper JSON = new ObjectMapper();

    private final Catalog catalog;
    private final JsonNode request;

    private Peer(Catalog catalog, JsonNode request) {
        this.catalog = catalog;
        this.request = request;
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream answers = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        System.setOut(System.err); // standard output is for answers; libraries print too
        BufferedReader requests =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            answers.println(JSON.writeValueAsString(answer(JSON.readTree(line))));
        }
    }

    /** What a verb returns, or the error it ended with: the tests decide what that means. */
    private static Map<String, Object> answer(JsonNode request) {
        Map<String, Object> answer = new LinkedHashMap<>();
        try (Catalog catalog = CatalogFactory.createCatalog(CatalogContext.create(settings(request)))) {
            answer.put("result", new Peer(catalog, request).run());
        } catch (Throwable error) {
            StringWriter trace = new StringWriter();
            error.printStackTrace(new PrintWriter(trace));
            answer.put("error", error.toString());
            answer.put("trace", trace.toString());
        }
        return answer;
    }

    /** The catalog of a warehouse: its directories, unless the request names another metastore. */
    private static Options settings(JsonNode request) {
        Options settings = new Options();
        settings.set("warehouse", request.get("warehouse").textValue());
        JsonNode others = request.path("catalog");
        others.fieldNames()
                .forEachRemaining(key -> settings.set(key, others.get(key).textValue()));
        return settings;
    }

    private Object run() throws Exception {
        String verb = text("verb");
        switch (verb) {
            case "create_table":
                return createTable();
            case "alter_table":
                return alterTable();
            case "describe":
                return describe();
            case "known_options":
                return knownOptions();
            case "list_databases":
                return catalog.listDatabases();
            case "list_tables":
                return catalog.listTables(text("database"));
            case "rename_table":
                catalog.renameTable(identifier(), Identifier.fromString(text("to")), false);
                return null;
            case "drop_table":
                catalog.dropTable(identifier(), false);
                return null;
            case "drop_database":
                catalog.dropDatabase(text("database"), false, true);
                return null;
            case "read":
                return read();
            case "stream":
                return stream();
            case "write":
                return Changes.write(table(), request);
            case "compact":
                return Changes.compact((FileStoreTable) table());
            case "delete":
                return Changes.delete((FileStoreTable) table(), request.get("positions"));
            case "drop_partition":
                return Changes.dropPartition(table(), options("partition"));
            case "live_files":
                return Changes.liveFiles((FileStoreTable) table());
            case "vectors":
                return Changes.vectors((FileStoreTable) table());
            case "tag":
                table().createTag(text("tag"), request.get("snapshot").longValue());
                return null;
            case "branch":
                table().createBranch(text("branch"), text("tag"));
                return null;
            case "fast_forward":
                table().fastForward(text("branch"));
                return null;
            case "consume":
                consumers().resetConsumer(
                        text("consumer"), new Consumer(request.get("next").longValue()));
                return null;
            case "consumers":
                return consumers().consumers();
            case "analyze":
                return analyze();
            case "statistics":
                return table().statistics().map(Statistics::toJson).map(Peer::parse).orElse(null);
            default:
                throw new IllegalArgumentException("no verb " + verb);
        }
    }

    /** The columns arrive as the field objects of a schema file. */
    private Object createTable() throws Exception {
        Schema.Builder schema = Schema.newBuilder();
        for (JsonNode column : request.get("columns")) {
            DataField field = DataTypeJsonParser.parseDataField(column);
            schema.column(field.name(), field.type(), field.description());
        }
        schema.partitionKeys(texts("partition_keys")).primaryKey(texts("primary_keys"));
        schema.options(options());
        catalog.createDatabase(identifier().getDatabaseName(), true);
        catalog.createTable(identifier(), schema.build(), false);
        return null;
    }

    private Object alterTable() throws Exception {
        List<SchemaChange> changes = new ArrayList<>();
        for (JsonNode change : request.get("changes")) {
            changes.add(change(change));
        }
        catalog.alterTable(identifier(), changes, false);
        return null;
    }

    private static SchemaChange change(JsonNode change) {
        String name = change.get(1).textValue();
        switch (change.get(0).textValue()) {
            case "add":
                return SchemaChange.addColumn(name, type(change.get(2)));
            case "drop":
                return SchemaChange.dropColumn(name);
            case "rename":
                return SchemaChange.renameColumn(name, change.get(2).textValue());
            case "retype":
                return SchemaChange.updateColumnType(name, type(change.get(2)));
            case "nullable":
                return SchemaChange.updateColumnNullability(name, change.get(2).booleanValue());
            case "first":
                return SchemaChange.updateColumnPosition(SchemaChange.Move.first(name));
            case "comment":
                return SchemaChange.updateColumnComment(name, change.get(2).textValue());
            case "set":
                return SchemaChange.setOption(name, change.get(2).textValue());
            case "unset":
                return SchemaChange.removeOption(name);
            default:
                throw new IllegalArgumentException("no change " + change);
        }
    }

    private static DataType type(JsonNode text) {
        return DataTypeJsonParser.parseDataType(text);
    }

    private Object describe() throws Exception {
        Table table = table();
        Map<String, Object> found = new LinkedHashMap<>();
        List<Object> columns = new ArrayList<>();
        for (DataField field : table.rowType().getFields()) {
            columns.add(List.of(field.id(), field.name(), field.type().asSQLString()));
        }
        found.put("columns", columns);
        found.put("partition_keys", table.partitionKeys());
        found.put("primary_keys", table.primaryKeys());
        found.put("comment", table.comment().orElse(null));
        found.put("options", ((FileStoreTable) table).schema().options());
        Optional<?> snapshot = table.latestSnapshot();
        found.put("snapshot", snapshot.isPresent() ? parse(JSON.writeValueAsString(snapshot.get())) : null);
        return found;
    }

    /** The keys of all options of tables that Java declares. */
    private static Object knownOptions() throws Exception {
        List<String> keys = new ArrayList<>();
        CoreOptions.getOptions().forEach(option -> keys.add(option.key()));
        for (Field field : IcebergOptions.class.getFields()) {
            if (field.getType() == ConfigOption.class) {
                keys.add(((ConfigOption<?>) field.get(null)).key());
            }
        }
        return keys;
    }

    /** The rows as lists of values, each with its kind, and how many files had to be opened. */
    private Object read() throws Exception {
        Table table = table();
        RowType type = table.rowType();
        ReadBuilder builder = table.newReadBuilder();
        Predicate filter = filter(type);
        if (filter != null) {
            builder = builder.withFilter(filter);
        }
        List<Object> rows = new ArrayList<>();
        List<String> kinds = new ArrayList<>();
        List<Split> splits = builder.newScan().plan().splits();
        boolean exactly = filter != null;
        try (RecordReader<InternalRow> reader =
                (exactly ? builder.newRead().executeFilter() : builder.newRead())
                        .createReader(splits)) {
            reader.forEachRemaining(
                    row -> {
                        rows.add(Values.rowToJson(row, type));
                        kinds.add(row.getRowKind().shortString());
                    });
        }
        Map<String, Object> found = new LinkedHashMap<>();
        found.put("columns", type.getFieldNames());
        found.put("rows", rows);
        found.put("kinds", kinds);
        found.put("splits", splits.size());
        return found;
    }

    /** The changes of each snapshot from one on, as a streaming read delivers them. */
    private Object stream() throws Exception {
        Table table = table();
        RowType type = table.rowType();
        ReadBuilder builder = table.newReadBuilder();
        StreamTableScan scan = builder.newStreamScan();
        scan.restore(request.get("from").longValue());
        List<Object> delivered = new ArrayList<>();
        while (true) {
            List<Split> splits = scan.plan().splits();
            if (splits.isEmpty()) {
                return delivered;
            }
            List<Object> rows = new ArrayList<>();
            try (RecordReader<InternalRow> reader = builder.newRead().createReader(splits)) {
                reader.forEachRemaining(
                        row ->
                                rows.add(
                                        Arrays.asList(
                                                row.getRowKind().shortString(),
                                                Values.rowToJson(row, type))));
            }
            delivered.add(rows);
        }
    }

    /** A comparison of one column with one value, or null for all rows. */
    private Predicate filter(RowType type) {
        JsonNode where = request.get("where");
        if (where == null || where.isNull()) {
            return null;
        }
        int column = type.getFieldIndex(where.get(0).textValue());
        Object literal = Values.fromJson(where.get(2), type.getTypeAt(column));
        PredicateBuilder builder = new PredicateBuilder(type);
        switch (where.get(1).textValue()) {
            case "=":
                return builder.equal(column, literal);
            case ">=":
                return builder.greaterOrEqual(column, literal);
            case "<":
                return builder.lessThan(column, literal);
            case "is null":
                return builder.isNull(column);
            default:
                throw new IllegalArgumentException("no comparison " + where);
        }
    }

    private Object analyze() throws Exception {
        FileStoreTable table = (FileStoreTable) table();
        long rows = table.latestSnapshot().get().totalRecordCount();
        Statistics statistics =
                new Statistics(
                        table.latestSnapshot().get().id(), table.schema().id(), rows, 100 * rows);
        try (var commit = table.newBatchWriteBuilder().newCommit()) {
            commit.updateStatistics(statistics);
        }
        return null;
    }

    private ConsumerManager consumers() throws Exception {
        FileStoreTable table = (FileStoreTable) table();
        return new ConsumerManager(table.fileIO(), table.location());
    }

    /** The table, with the options of this request on top of its own. */
    private Table table() throws Exception {
        Table table = catalog.getTable(identifier());
        Map<String, String> dynamic = options();
        return dynamic.isEmpty() ? table : table.copy(dynamic);
    }

    private Identifier identifier() {
        return Identifier.fromString(text("table"));
    }

    private Map<String, String> options() {
        return options("options");
    }

    private Map<String, String> options(String name) {
        Map<String, String> options = new LinkedHashMap<>();
        JsonNode given = request.get(name);
        if (given != null) {
            given.fields().forEachRemaining(e -> options.put(e.getKey(), e.getValue().textValue()));
        }
        return options;
    }

    private String text(String name) {
        return request.get(name).textValue();
    }

    private List<String> texts(String name) {
        List<String> words = new ArrayList<>();
        request.get(name).forEach(word -> words.add(word.textValue()));
        return words;
    }

    private static JsonNode parse(String json) {
        try {
            return JSON.readTree(json);
        } catch (Exception error) {
            throw new IllegalStateException(error);
        }
    }
}
