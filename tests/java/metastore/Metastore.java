import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hive.metastore.HiveMetaStore;
import org.apache.hadoop.hive.metastore.api.FieldSchema;
import org.apache.hadoop.hive.metastore.api.SerDeInfo;
import org.apache.hadoop.hive.metastore.api.StorageDescriptor;
import org.apache.hadoop.hive.metastore.api.Table;
import org.apache.hadoop.hive.metastore.api.ThriftHiveMetastore;
import org.apache.hadoop.hive.metastore.conf.MetastoreConf;
import org.apache.hadoop.hive.metastore.txn.TxnDbUtil;
import org.apache.hadoop.hive.metastore.txn.TxnUtils;
import org.apache.thrift.server.TThreadPoolServer;
import org.apache.thrift.transport.TServerSocket;

/**
 * A Hive metastore over Derby, on the loopback address only; Hive's own program listens everywhere.
 * Its settings are system properties, its port is the argument. It prints a line once it answers.
 */
public class Metastore {
  public static void main(String[] arguments) throws Throwable {
    Configuration settings = MetastoreConf.newMetastoreConf();
    HiveMetaStore.HMSHandler handler = new HiveMetaStore.HMSHandler("tests", settings, true);
    // The tables of the database are created by the first use of each kind of object.
    handler.create_table(table());
    handler.drop_table("default", "setup", false);
    TxnDbUtil.setConfValues(settings);
    TxnDbUtil.prepDb(settings);
    deleteLocksOfTheDead(settings);
    int port = Integer.parseInt(arguments[0]);
    TServerSocket socket =
        new TServerSocket(new InetSocketAddress(InetAddress.getLoopbackAddress(), port));
    TThreadPoolServer.Args how = new TThreadPoolServer.Args(socket);
    TThreadPoolServer server =
        new TThreadPoolServer(how.processor(new ThriftHiveMetastore.Processor<>(handler)));
    System.out.println(socket.getServerSocket().getLocalPort());
    server.serve();
  }

  /** Does what Hive's own program does every few minutes, but every second. */
  private static void deleteLocksOfTheDead(Configuration settings) {
    Thread cleaner =
        new Thread(
            () -> {
              while (true) {
                TxnUtils.getTxnStore(settings).performTimeOuts();
                try {
                  Thread.sleep(1000);
                } catch (InterruptedException end) {
                  return;
                }
              }
            });
    cleaner.setDaemon(true);
    cleaner.start();
  }

  private static Table table() {
    StorageDescriptor storage = new StorageDescriptor();
    storage.setCols(List.of(new FieldSchema("a", "int", null)));
    storage.setSerdeInfo(new SerDeInfo("setup", "none", new HashMap<>()));
    Table table = new Table();
    table.setDbName("default");
    table.setTableName("setup");
    table.setTableType("EXTERNAL_TABLE");
    table.setParameters(new HashMap<>(Map.of("EXTERNAL", "TRUE")));
    table.setPartitionKeys(List.of());
    table.setSd(storage);
    return table;
  }
}
