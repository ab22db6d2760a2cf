import { describe, expect, it } from "vitest";
import { splitZone, zoneCalled } from "../../src/text/zone.ts";

const split = (text: string) => splitZone(text, (words) => `/gatehouse night ${words}`);

describe("a time zone after a time of day", () => {
  it.each([
    ["8pm CET", "8pm", "Europe/Paris"],
    ["8 pm cet", "8 pm", "Europe/Paris"],
    ["yesterday 20:00 Europe/Berlin", "yesterday 20:00", "Europe/Berlin"],
    ["20:00 Tokyo", "20:00", "Asia/Tokyo"],
  ])("is separated from it: %s", (text, words, zone) => {
    expect(split(text)).toEqual({ words, zone });
  });

  it.each(["last west", "12h", "8pm", "8pm IDK", "yesterday", ""])(
    "isn't seen in other words: %s",
    (text) => {
      expect(split(text)).toEqual({ words: text, zone: undefined });
    },
  );

  it("is asked back where it has several meanings", () => {
    const refused = expect.objectContaining({
      message: "CST can be US Central time, China time, or Cuba time. Nothing was done.",
      hint: expect.stringContaining("`/gatehouse night 8pm Asia/Shanghai` for China time"),
    });
    expect(() => split("8pm CST")).toThrow(refused);
  });
});

describe("the zones that abbreviations mean", () => {
  it("are known to this machine's clock", () => {
    for (const word of ["CET", "EET", "MSK", "EST", "HST", "NZST", "AEDT", "WAT", "EAT", "GMT"]) {
      const meant = zoneCalled(word);
      expect(meant?.match).toBe("one");
      for (const { zone } of meant?.match === "one" ? [meant] : [])
        expect(() => new Intl.DateTimeFormat("en", { timeZone: zone })).not.toThrow();
    }
  });
});
