import { expect, it } from "vitest";
import { dateInWords, timeInMargin, timeOf } from "../../../sandbox/page/browser/text/time.ts";

const at = new Date(2026, 10, 28, 13, 6).getTime();

it("writes times without a zero before them, as Slack does", () => {
  const time = /^(1:06\sPM|13:06)$/;
  expect(timeOf(at)).toMatch(time);
  expect(dateInWords(at / 1000, "{time}")).toMatch(time);
  expect(dateInWords(at / 1000, "{time_secs}")).toMatch(/^(1:06:00\sPM|13:06:00)$/);
});

it("leaves out AM and PM where there is no room for them", () => {
  expect(timeInMargin(at)).toMatch(/^(1|13):06$/);
});
