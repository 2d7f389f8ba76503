import java.nio.file.Files;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.ToIntFunction;

import org.apache.paimon.AppendOnlyFileStore;
import org.apache.paimon.CoreOptions;
import org.apache.paimon.append.AppendCompactCoordinator;
import org.apache.paimon.append.AppendCompactTask;
import org.apache.paimon.append.dataevolution.DataEvolutionCompactCoordinator;
import org.apache.paimon.append.dataevolution.DataEvolutionCompactTask;
import org.apache.paimon.data.BinaryRow;
import org.apache.paimon.data.GenericRow;
import org.apache.paimon.data.InternalRow;
import org.apache.paimon.deletionvectors.BitmapDeletionVector;
import org.apache.paimon.deletionvectors.DeletionVector;
import org.apache.paimon.deletionvectors.append.BaseAppendDeleteFileMaintainer;
import org.apache.paimon.disk.IOManager;
import org.apache.paimon.index.DeletionVectorMeta;
import org.apache.paimon.index.HashBucketAssigner;
import org.apache.paimon.index.IndexFileHandler;
import org.apache.paimon.index.IndexFileMeta;
import org.apache.paimon.io.CompactIncrement;
import org.apache.paimon.io.DataIncrement;
import org.apache.paimon.manifest.FileKind;
import org.apache.paimon.manifest.IndexManifestEntry;
import org.apache.paimon.manifest.ManifestEntry;
import org.apache.paimon.operation.BaseAppendFileStoreWrite;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.paimon.table.BucketMode;
import org.apache.paimon.table.FileStoreTable;
import org.apache.paimon.table.Table;
import org.apache.paimon.table.sink.BatchTableCommit;
import org.apache.paimon.table.sink.BatchTableWrite;
import org.apache.paimon.table.sink.BatchWriteBuilder;
import org.apache.paimon.table.sink.CommitMessage;
import org.apache.paimon.table.sink.CommitMessageImpl;
import org.apache.paimon.table.sink.RowKeyExtractor;
import org.apache.paimon.types.RowKind;

/** What changes the rows of a table, each call one commit, and what lies in it afterwards. */
final class Changes {
    private Changes() {}

    /**
     * Writes rows with their kinds; {@code buckets}, where given, names the bucket of each. Without
     * it, Java chooses, also in a table with dynamic buckets.
     */
    static Object write(Table table, JsonNode request) throws Exception {
        JsonNode kinds = request.get("kinds");
        JsonNode buckets = request.get("buckets");
        boolean named = buckets != null && !buckets.isNull();
        ToIntFunction<InternalRow> assigner = named ? null : assigner((FileStoreTable) table);
        BatchWriteBuilder builder = table.newBatchWriteBuilder();
        if (request.path("overwrite").booleanValue()) {
            builder = builder.withOverwrite();
        }
        try (BatchTableWrite write = builder.newWrite().withIOManager(disk());
                BatchTableCommit commit = builder.newCommit()) {
            int position = 0;
            for (JsonNode values : request.get("rows")) {
                GenericRow row = Values.rowFromJson(values, table.rowType());
                if (kinds != null && !kinds.isNull()) {
                    row.setRowKind(RowKind.fromShortString(kinds.get(position).textValue()));
                }
                if (named) {
                    write.write(row, buckets.get(position).intValue());
                } else if (assigner != null) {
                    write.write(row, assigner.applyAsInt(row));
                } else {
                    write.write(row);
                }
                position++;
            }
            commit.commit(write.prepareCommit());
        }
        return null;
    }

    /** Chooses the dynamic bucket of each row by the hash indexes; null for other tables. */
    private static ToIntFunction<InternalRow> assigner(FileStoreTable table) {
        if (table.bucketMode() != BucketMode.HASH_DYNAMIC) {
            return null;
        }
        CoreOptions options = table.coreOptions();
        RowKeyExtractor keys = table.createRowKeyExtractor();
        HashBucketAssigner assigner =
                new HashBucketAssigner(
                        table.snapshotManager(),
                        "java-writer",
                        table.store().newIndexFileHandler(),
                        1,
                        1,
                        0,
                        options.dynamicBucketTargetRowNum(),
                        options.dynamicBucketMaxBuckets());
        return row -> {
            keys.setRecord(row);
            return assigner.assign(keys.partition(), keys.trimmedPrimaryKey().hashCode());
        };
    }

    /** Compacts everything, as a dedicated compaction job does. */
    static Object compact(FileStoreTable table) throws Exception {
        boolean unaware = table.bucketMode() == BucketMode.BUCKET_UNAWARE;
        return unaware ? compactUnaware(table) : compactBuckets(table);
    }

    private static Object compactUnaware(FileStoreTable table) throws Exception {
        List<CommitMessage> messages = new ArrayList<>();
        if (table.coreOptions().dataEvolutionEnabled()) {
            for (DataEvolutionCompactTask task :
                    new DataEvolutionCompactCoordinator(table, false, false).plan()) {
                messages.add(task.doCompact(table, "java-compaction"));
            }
            return commit(table, messages);
        }
        BaseAppendFileStoreWrite write =
                ((AppendOnlyFileStore) table.store()).newWrite("java-compaction");
        for (AppendCompactTask task : new AppendCompactCoordinator(table, false).run()) {
            messages.add(task.doCompact(table, write));
        }
        write.close();
        return commit(table, messages);
    }

    private static Object commit(FileStoreTable table, List<CommitMessage> messages)
            throws Exception {
        try (BatchTableCommit commit = table.newBatchWriteBuilder().newCommit()) {
            commit.commit(messages);
        }
        return messages.size();
    }

    private static Object compactBuckets(FileStoreTable table) throws Exception {
        Map<String, ManifestEntry> buckets = new LinkedHashMap<>();
        for (ManifestEntry entry : table.store().newScan().plan().files()) {
            buckets.put(entry.partition().hashCode() + "/" + entry.bucket(), entry);
        }
        BatchWriteBuilder builder = table.newBatchWriteBuilder();
        try (BatchTableWrite write = builder.newWrite().withIOManager(disk());
                BatchTableCommit commit = builder.newCommit()) {
            for (ManifestEntry entry : buckets.values()) {
                write.compact(entry.partition(), entry.bucket(), true);
            }
            commit.commit(write.prepareCommit());
        }
        return buckets.size();
    }

    static Object dropPartition(Table table, Map<String, String> partition) throws Exception {
        try (BatchTableCommit commit = table.newBatchWriteBuilder().newCommit()) {
            commit.truncatePartitions(List.of(partition));
        }
        return null;
    }

    /** Deletes positions of data files of an append table, as a DELETE statement does. */
    static Object delete(FileStoreTable table, JsonNode positions) throws Exception {
        IndexFileHandler handler = table.store().newIndexFileHandler();
        List<CommitMessage> messages = new ArrayList<>();
        Map<String, BaseAppendDeleteFileMaintainer> maintainers = new LinkedHashMap<>();
        for (ManifestEntry entry : table.store().newScan().plan().files()) {
            JsonNode deleted = positions.get(entry.file().fileName());
            if (deleted == null) {
                continue;
            }
            DeletionVector vector = new BitmapDeletionVector();
            deleted.forEach(position -> vector.delete(position.longValue()));
            maintainer(table, handler, entry, maintainers)
                    .notifyNewDeletionVector(entry.file().fileName(), vector);
        }
        for (BaseAppendDeleteFileMaintainer maintainer : maintainers.values()) {
            messages.add(message(maintainer));
        }
        try (BatchTableCommit commit = table.newBatchWriteBuilder().newCommit()) {
            commit.commit(messages);
        }
        return messages.size();
    }

    /** One for each partition, or for each bucket where the table has buckets. */
    private static BaseAppendDeleteFileMaintainer maintainer(
            FileStoreTable table,
            IndexFileHandler handler,
            ManifestEntry entry,
            Map<String, BaseAppendDeleteFileMaintainer> known) {
        BinaryRow partition = entry.partition().copy();
        boolean unaware = table.bucketMode() == BucketMode.BUCKET_UNAWARE;
        return known.computeIfAbsent(
                partition.hashCode() + "/" + entry.bucket(),
                key ->
                        unaware
                                ? BaseAppendDeleteFileMaintainer.forUnawareAppend(
                                        handler, table.latestSnapshot().get(), partition)
                                : BaseAppendDeleteFileMaintainer.forBucketedAppend(
                                        handler,
                                        table.latestSnapshot().get(),
                                        partition,
                                        entry.bucket()));
    }

    private static CommitMessage message(BaseAppendDeleteFileMaintainer maintainer) {
        List<IndexFileMeta> added = new ArrayList<>();
        List<IndexFileMeta> removed = new ArrayList<>();
        for (IndexManifestEntry entry : maintainer.persist()) {
            (entry.kind() == FileKind.ADD ? added : removed).add(entry.indexFile());
        }
        return new CommitMessageImpl(
                maintainer.getPartition(),
                maintainer.getBucket(),
                null,
                new DataIncrement(
                        Collections.emptyList(),
                        Collections.emptyList(),
                        Collections.emptyList(),
                        added,
                        removed),
                CompactIncrement.emptyIncrement());
    }

    static Object liveFiles(FileStoreTable table) {
        List<Object> files = new ArrayList<>();
        for (ManifestEntry entry : table.store().newScan().plan().files()) {
            Map<String, Object> file = new LinkedHashMap<>();
            file.put("name", entry.file().fileName());
            file.put("bucket", entry.bucket());
            file.put("level", entry.file().level());
            file.put("rows", entry.file().rowCount());
            files.add(file);
        }
        return files;
    }

    /** Each range of each deletion vector file of the newest snapshot, by the file it names. */
    static Object vectors(FileStoreTable table) {
        List<Object> ranges = new ArrayList<>();
        for (IndexManifestEntry entry : table.store().newIndexFileHandler().scanEntries()) {
            if (entry.indexFile().dvRanges() == null) {
                continue;
            }
            for (DeletionVectorMeta range : entry.indexFile().dvRanges().values()) {
                Map<String, Object> found = new LinkedHashMap<>();
                found.put("index_file", entry.indexFile().fileName());
                found.put("data_file", range.dataFileName());
                found.put("cardinality", range.cardinality());
                ranges.add(found);
            }
        }
        return ranges;
    }

    private static IOManager disk() throws Exception {
        return IOManager.create(Files.createTempDirectory("java-peer").toString());
    }
}
