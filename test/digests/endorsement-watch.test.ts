import { describe, expect, it } from "vitest";
import { appraise } from "../../src/attestation/appraise.ts";
import { endorsementNews, endorsementsOf } from "../../src/digests/endorsement-watch.ts";
import { good, now } from "../attestation/reports.ts";

const dayMs = 86_400_000;
const vm = (n: number) => ({ id: `vm-${n}`, name: `web-${n}` });
const judgedAt = (at: number, many = 3) =>
  Array.from({ length: many }, (_, n) => ({
    vm: vm(n),
    appraisal: appraise(good({ now: at, says: { timestamp: "" } })),
  }));

describe("what vouches for VMs", () => {
  it("is named from 14 days before its end, once for all that hang on it", () => {
    expect(endorsementsOf(judgedAt(now), [], now)).toEqual([]);
    const at = now + 17 * dayMs;
    expect(endorsementsOf(judgedAt(at, 5), [], at)).toEqual([
      {
        what: "AMD's revocation list of Genoa",
        endsAt: now + 30 * dayMs,
        since: at,
        vms: 5,
        names: ["web-0", "web-1", "web-2"],
        vmId: "vm-0",
      },
    ]);
  });

  it("is one alarm when it has ended, none while it stays so, and one when it is over", () => {
    const at = now + 31 * dayMs;
    const ended = endorsementsOf(judgedAt(at, 22), [], at);
    const [news, ...more] = endorsementNews([], ended);
    expect(news?.message.text).toBe(
      "❔ 22 pinned VMs can't be verified: AMD's revocation list of Genoa has expired.",
    );
    expect(more).toEqual([]);
    const later = endorsementsOf(judgedAt(at + dayMs, 21), ended, at + dayMs);
    expect(later[0]?.since).toBe(at);
    expect(endorsementNews(ended, later)).toEqual([]);
    expect(endorsementNews(later, []).map(({ id }) => id)).toEqual([`${news?.id ?? ""}-over`]);
  });

  it("stays as it was where no report can be read", () => {
    const at = now + 31 * dayMs;
    const ended = endorsementsOf(judgedAt(at), [], at);
    const lost = { report: { error: new Error("away") }, verification: undefined };
    const unread = [{ vm: vm(0), appraisal: appraise(good(lost)) }];
    expect(endorsementsOf(unread, ended, at + dayMs)).toEqual(ended);
  });
});
