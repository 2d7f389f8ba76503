import java.math.BigDecimal;
import java.math.BigInteger;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

import org.apache.paimon.data.BinaryString;
import org.apache.paimon.data.Decimal;
import org.apache.paimon.data.GenericArray;
import org.apache.paimon.data.GenericMap;
import org.apache.paimon.data.GenericRow;
import org.apache.paimon.data.InternalArray;
import org.apache.paimon.data.InternalMap;
import org.apache.paimon.data.InternalRow;
import org.apache.paimon.data.Timestamp;
import org.apache.paimon.data.variant.GenericVariant;
import org.apache.paimon.data.variant.Variant;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.paimon.types.ArrayType;
import org.apache.paimon.types.DataType;
import org.apache.paimon.types.DataTypes;
import org.apache.paimon.types.DecimalType;
import org.apache.paimon.types.MapType;
import org.apache.paimon.types.MultisetType;
import org.apache.paimon.types.RowType;

/**
 * Paimon's values as JSON and back, without loss: what tests/java/wire.py says of each type.
 *
 * <p>Numbers are numbers, FLOAT and DOUBLE their IEEE 754 bits, bytes hexadecimal digits, a DATE
 * its day, a TIME its millisecond, a timestamp its nanosecond since 1970; an ARRAY or ROW is a
 * list, a MAP or MULTISET a list of pairs.
 */
final class Values {
    private static final BigInteger NANOS_PER_MILLI = BigInteger.valueOf(1_000_000);

    private Values() {}

    static List<Object> rowToJson(InternalRow row, RowType type) {
        List<Object> values = new ArrayList<>();
        for (int i = 0; i < type.getFieldCount(); i++) {
            DataType kind = type.getTypeAt(i);
            values.add(toJson(InternalRow.createFieldGetter(kind, i).getFieldOrNull(row), kind));
        }
        return values;
    }

    private static Object toJson(Object value, DataType type) {
        if (value == null) {
            return null;
        }
        switch (type.getTypeRoot()) {
            case FLOAT:
                return Float.floatToIntBits((Float) value);
            case DOUBLE:
                return Double.doubleToLongBits((Double) value);
            case CHAR:
            case VARCHAR:
                return value.toString();
            case BINARY:
            case VARBINARY:
                return HexFormat.of().formatHex((byte[]) value);
            case DECIMAL:
                return ((Decimal) value).toBigDecimal().toPlainString();
            case TIMESTAMP_WITHOUT_TIME_ZONE:
            case TIMESTAMP_WITH_LOCAL_TIME_ZONE:
                return nanosOf((Timestamp) value);
            case VARIANT:
                Variant variant = (Variant) value;
                HexFormat hex = HexFormat.of();
                return List.of(hex.formatHex(variant.value()), hex.formatHex(variant.metadata()));
            case ARRAY:
                return arrayToJson((InternalArray) value, ((ArrayType) type).getElementType());
            case MAP:
                MapType map = (MapType) type;
                return mapToJson((InternalMap) value, map.getKeyType(), map.getValueType());
            case MULTISET:
                DataType element = ((MultisetType) type).getElementType();
                return mapToJson((InternalMap) value, element, DataTypes.INT());
            case ROW:
                return rowToJson((InternalRow) value, (RowType) type);
            default:
                return value;
        }
    }

    private static List<Object> arrayToJson(InternalArray array, DataType type) {
        InternalArray.ElementGetter getter = InternalArray.createElementGetter(type);
        List<Object> values = new ArrayList<>();
        for (int i = 0; i < array.size(); i++) {
            values.add(toJson(getter.getElementOrNull(array, i), type));
        }
        return values;
    }

    private static List<Object> mapToJson(InternalMap map, DataType keyType, DataType valueType) {
        List<Object> keys = arrayToJson(map.keyArray(), keyType);
        List<Object> values = arrayToJson(map.valueArray(), valueType);
        List<Object> pairs = new ArrayList<>();
        for (int i = 0; i < keys.size(); i++) {
            List<Object> pair = new ArrayList<>();
            pair.add(keys.get(i));
            pair.add(values.get(i));
            pairs.add(pair);
        }
        return pairs;
    }

    static GenericRow rowFromJson(JsonNode values, RowType type) {
        GenericRow row = new GenericRow(type.getFieldCount());
        for (int i = 0; i < type.getFieldCount(); i++) {
            row.setField(i, fromJson(values.get(i), type.getTypeAt(i)));
        }
        return row;
    }

    static Object fromJson(JsonNode value, DataType type) {
        if (value == null || value.isNull()) {
            return null;
        }
        switch (type.getTypeRoot()) {
            case BOOLEAN:
                return value.booleanValue();
            case TINYINT:
                return (byte) value.intValue();
            case SMALLINT:
                return (short) value.intValue();
            case INTEGER:
            case DATE:
            case TIME_WITHOUT_TIME_ZONE:
                return value.intValue();
            case BIGINT:
                return value.longValue();
            case FLOAT:
                return Float.intBitsToFloat(value.intValue());
            case DOUBLE:
                return Double.longBitsToDouble(value.longValue());
            case CHAR:
            case VARCHAR:
                return BinaryString.fromString(value.textValue());
            case BINARY:
            case VARBINARY:
                return HexFormat.of().parseHex(value.textValue());
            case DECIMAL:
                DecimalType decimal = (DecimalType) type;
                BigDecimal number = new BigDecimal(value.textValue());
                return Decimal.fromBigDecimal(number, decimal.getPrecision(), decimal.getScale());
            case TIMESTAMP_WITHOUT_TIME_ZONE:
            case TIMESTAMP_WITH_LOCAL_TIME_ZONE:
                return timestampOf(value.bigIntegerValue());
            case VARIANT:
                HexFormat hex = HexFormat.of();
                byte[] content = hex.parseHex(value.get(0).textValue());
                return new GenericVariant(content, hex.parseHex(value.get(1).textValue()));
            case ARRAY:
                return arrayFromJson(value, ((ArrayType) type).getElementType());
            case MAP:
                MapType map = (MapType) type;
                return mapFromJson(value, map.getKeyType(), map.getValueType());
            case MULTISET:
                DataType element = ((MultisetType) type).getElementType();
                return mapFromJson(value, element, DataTypes.INT());
            case ROW:
                return rowFromJson(value, (RowType) type);
            default:
                throw new IllegalArgumentException("no values of " + type);
        }
    }

    private static GenericArray arrayFromJson(JsonNode values, DataType type) {
        Object[] elements = new Object[values.size()];
        for (int i = 0; i < elements.length; i++) {
            elements[i] = fromJson(values.get(i), type);
        }
        return new GenericArray(elements);
    }

    private static GenericMap mapFromJson(JsonNode pairs, DataType keyType, DataType valueType) {
        Map<Object, Object> entries = new LinkedHashMap<>();
        for (JsonNode pair : pairs) {
            entries.put(fromJson(pair.get(0), keyType), fromJson(pair.get(1), valueType));
        }
        return new GenericMap(entries);
    }

    private static BigInteger nanosOf(Timestamp timestamp) {
        return BigInteger.valueOf(timestamp.getMillisecond())
                .multiply(NANOS_PER_MILLI)
                .add(BigInteger.valueOf(timestamp.getNanoOfMillisecond()));
    }

    private static Timestamp timestampOf(BigInteger nanos) {
        BigInteger rest = nanos.mod(NANOS_PER_MILLI);
        long millis = nanos.subtract(rest).divide(NANOS_PER_MILLI).longValueExact();
        return Timestamp.fromEpochMillis(millis, rest.intValue());
    }
}
