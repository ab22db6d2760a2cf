import * as z from "zod";
import { expect, it, describe } from "vitest";
import { createLog } from "../../src/log/log.ts";
import { defineRecord, logUnreadableValues, objectOf } from "../../src/redis/define-record.ts";

describe("a value that can't be read", () => {
  const lamp = defineRecord({
    name: "lamp",
    schema: objectOf<{ isOn: boolean; color?: string }>({
      isOn: z.boolean(),
      color: z.string().exactOptional(),
    }),
  });

  it("is logged once, with its record, its key, and what is wrong, and never with the value", async () => {
    const lines: Record<string, unknown>[] = [];
    const write = (line: string) => lines.push(JSON.parse(line) as Record<string, unknown>);
    const log = createLog({ level: "info", write: (line) => void write(line) });
    const logging = logUnreadableValues(log);
    for (let times = 0; times < 3; times++) {
      expect(lamp.parse('{"isOn":"hunter2"}', "{gatehouse}:lamp:1")).toBeUndefined();
      expect(lamp.parse("hunter2", "{gatehouse}:lamp:2")).toBeUndefined();
    }
    await logging.close();
    lamp.parse("hunter2", "{gatehouse}:lamp:3");
    expect(lines).toMatchObject([
      {
        level: "error",
        event: "redis.unreadable",
        record: "lamp",
        key: "{gatehouse}:lamp:1",
        problem: "isOn: Invalid input: expected boolean, received string",
      },
      { record: "lamp", key: "{gatehouse}:lamp:2", problem: "it isn't JSON" },
    ]);
    expect(lines).toHaveLength(2);
    expect(JSON.stringify(lines)).not.toContain("hunter2");
  });

  it("hides no other value of its hash", () => {
    const fields = { a: lamp.write({ isOn: true }), b: "{", c: lamp.write({ isOn: false }) };
    expect(lamp.parseAll(fields, "lamps")).toEqual([{ isOn: true }, { isOn: false }]);
  });
});
