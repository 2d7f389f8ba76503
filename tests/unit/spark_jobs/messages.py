"""Change messages as Debezium, Canal and Maxwell write them."""

from __future__ import annotations


def debezium(op, before=None, after=None, table="stock", schema=None):
    body = {"before": before, "after": after, "op": op, "source": {"db": "shop", "table": table}}
    if schema is None:
        return body
    fields = [
        {"field": "before", "type": "struct", "fields": schema},
        {"field": "after", "type": "struct", "fields": schema},
    ]
    return {"schema": {"type": "struct", "fields": fields}, "payload": body}


def canal(kind, *data, old=None, types=None, ddl=False):
    return {
        "type": kind,
        "data": [*data],
        "old": old,
        "isDdl": ddl,
        "database": "shop",
        "table": "stock",
        "mysqlType": types or {"sku": "varchar(20)", "pieces": "int(11)"},
    }


def maxwell(kind, data, old=None):
    said = {"type": kind, "data": data, "database": "shop", "table": "stock"}
    return said if old is None else {**said, "old": old}


def item(sku, pieces):
    return {"sku": sku, "pieces": pieces}


ONE_STORY = {
    "debezium": [
        debezium("r", after=item("pear", 1)),
        debezium("c", after=item("plum", 2)),
        debezium("u", before=item("pear", 1), after=item("pear", 5)),
        "null",
        debezium("d", before=item("plum", 2)),
        debezium("c", after=item("fig", 9)),
        debezium("u", before=item("fig", 9), after=item("date", 9)),
    ],
    "canal": [
        canal("INSERT", item("pear", "1"), item("plum", "2")),
        canal("UPDATE", item("pear", "5"), old=[{"pieces": "1"}]),
        canal("DELETE", item("plum", "2")),
        canal("ALTER", ddl=True),
        canal("INSERT", item("fig", "9")),
        canal("UPDATE", item("date", "9"), old=[{"sku": "fig"}]),
    ],
    "maxwell": [
        maxwell("bootstrap-start", {}),
        maxwell("bootstrap-insert", item("pear", 1)),
        maxwell("insert", item("plum", 2)),
        maxwell("table-drop", {}),
        maxwell("update", item("pear", 5), old={"pieces": 1}),
        maxwell("delete", item("plum", 2)),
        maxwell("insert", item("fig", 9)),
        maxwell("update", item("date", 9), old={"sku": "fig"}),
    ],
}
