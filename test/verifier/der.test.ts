import { describe, expect, it } from "vitest";
import {
  bitsOf,
  exactTime,
  integerOf,
  isTrue,
  numberOf,
  oidOf,
  readValue,
  readValues,
  tags,
  timeOf,
} from "../../src/verifier/der.ts";
import { readPem } from "../../src/verifier/pem.ts";
import { pem } from "../../sandbox/evidence/der-writer.ts";

const of = (hex: string) => Buffer.from(hex, "hex");
const valueOf = (hex: string) => readValues(of(hex))?.[0];

describe("the reader of DER", () => {
  it("reads values that stand one after the other, to the last byte", () => {
    expect(readValues(of("020105040100"))?.map(({ tag }) => tag)).toEqual([2, 4]);
    expect(readValues(of(""))).toEqual([]);
    expect(numberOf(valueOf("02020100"))).toBe(256);
    expect(oidOf(valueOf("06092a864886f84d010d01"))).toBe("1.2.840.113741.1.13.1");
  });

  it.each([
    ["cut in its content", "020305"],
    ["cut in its length", "0282"],
    ["a length of no known end", "30800201050000"],
    ["a length in a longer form than needed", "02810105"],
    ["a length with zeros before it", "02820085" + "01".repeat(0x85)],
    ["a length of five bytes", "0285000000000105"],
    ["a tag of several bytes", "1f81010105"],
    ["bytes left over", "02010500"],
  ])("refuses %s", (_why, hex) => {
    expect(readValues(of(hex))).toBeUndefined();
  });

  it("knows one spelling of each value", () => {
    expect(readValue(of("020105"), tags.sequence)).toBeUndefined();
    expect(readValue(of("020105020105"), tags.integer)).toBeUndefined();
    expect(integerOf(valueOf("02020005"))).toBeUndefined();
    expect(integerOf(valueOf("0202ff80"))).toBeUndefined();
    expect(integerOf(valueOf("0200"))).toBeUndefined();
    expect(numberOf(valueOf("020180"))).toBeUndefined();
    expect(numberOf(valueOf("0206010000000000"))).toBeUndefined();
    expect([isTrue(valueOf("0101ff")), isTrue(valueOf("010101")), isTrue(undefined)]).toEqual([
      true,
      false,
      false,
    ]);
    expect(bitsOf(valueOf("03020780"))).toBeUndefined();
    expect(oidOf(valueOf("06028001"))).toBeUndefined();
    expect(oidOf(valueOf("060281"))).toBeUndefined();
    expect(oidOf(valueOf("06012a"))).toBe("1.2");
  });

  it("reads times of both kinds, and none that a calendar doesn't have", () => {
    const utc = (text: string) => timeOf({ tag: 0x17, content: Buffer.from(text), whole: of("") });
    expect(utc("491231235950Z")).toBe(Date.parse("2049-12-31T23:59:50Z"));
    expect(utc("500101000000Z")).toBe(Date.parse("1950-01-01T00:00:00Z"));
    expect(utc("230230000000Z")).toBeUndefined();
    expect(utc("2301010000Z")).toBeUndefined();
    expect(utc("230101000000+0100")).toBeUndefined();
    const general = { tag: 0x18, content: Buffer.from("20500101000000Z"), whole: of("") };
    expect(timeOf(general)).toBe(Date.parse("2050-01-01T00:00:00Z"));
    expect(exactTime("2026-02-29T00:00:00Z")).toBeUndefined();
    expect(exactTime("2026-03-01T00:00:00.000Z")).toBeUndefined();
    expect(exactTime("2028-02-29T24:00:00Z")).toBeUndefined();
  });
});

describe("the reader of PEM", () => {
  const text = pem(of("3000"), of("300100"));

  it("takes certificates with nothing but line ends between them, and a zero byte behind", () => {
    expect(readPem(text)?.map((der) => der.toString("hex"))).toEqual(["3000", "300100"]);
    expect(readPem(`${text.replaceAll("\n", "\r\n")}\r\n\0`)).toHaveLength(2);
  });

  it.each([
    ["nothing", ""],
    ["words before", `a\n${text}`],
    ["words between", text.replace("-----\n-----", "-----\na\n-----")],
    ["words behind", `${text}a`],
    ["a space behind", `${text} `],
    ["letters that are none of base64", text.replace("MAA=", "MA~=")],
    ["bits that don't count", text.replace("MAA=", "MAB=")],
    ["another label", text.replaceAll("CERTIFICATE", "X509 CRL")],
    ["more than four", text.repeat(3)],
  ])("refuses %s", (_why, changed) => {
    expect(readPem(changed)).toBeUndefined();
  });
});
