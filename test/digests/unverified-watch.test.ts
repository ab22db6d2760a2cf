import { describe, expect, it } from "vitest";
import { appraise } from "../../src/attestation/appraise.ts";
import {
  amongVms,
  unverifiedNews,
  unverifiedIn,
  type UnverifiedRecord,
} from "../../src/digests/unverified-watch.ts";
import { running } from "./digest-processes.ts";
import { good, now } from "../attestation/reports.ts";

const dayMs = 86_400_000;
const vm = (n: number) => ({ ...running(`web-${n}`), id: `vm-${n}` });
const judgedAt = (at: number, many = 3) =>
  Array.from({ length: many }, (_, n) => ({
    vm: vm(n),
    appraisal: appraise(good({ now: at, says: { timestamp: "" } })),
  }));

const on = (at: number, before: readonly UnverifiedRecord[] = []) => ({
  before,
  pinned: new Set(Array.from({ length: 30 }, (_, n) => `vm-${n}`)),
  placeOf: () => "access",
  now: at,
});

describe("what vouches for VMs", () => {
  it("is named from 14 days before its end, once for all that hang on it", () => {
    expect(unverifiedIn(judgedAt(now), on(now))).toEqual([]);
    const at = now + 17 * dayMs;
    expect(unverifiedIn(judgedAt(at, 5), on(at))).toEqual([
      {
        what: "AMD's revocation list of Genoa",
        endsAt: now + 30 * dayMs,
        since: at,
        vms: 5,
        names: ["web-0", "web-1", "web-2"],
        vmId: "vm-0",
        vmIds: ["vm-0", "vm-1", "vm-2", "vm-3", "vm-4"],
      },
    ]);
  });

  it("is one alarm when it has ended, none while it stays so, and one when it is over", () => {
    const at = now + 31 * dayMs;
    const ended = unverifiedIn(judgedAt(at, 22), on(at));
    const [news, ...more] = unverifiedNews([], ended);
    expect(news?.message.text).toBe(
      "❔ 22 pinned VMs can't be verified: AMD's revocation list of Genoa has expired.",
    );
    expect(more).toEqual([]);
    const later = unverifiedIn(judgedAt(at + dayMs, 21), on(at + dayMs, ended));
    expect(later[0]?.since).toBe(at);
    expect(unverifiedNews(ended, later)).toEqual([]);
    expect(unverifiedNews(later, []).map(({ id }) => id)).toEqual([`${news?.id ?? ""}-over`]);
  });

  it("stays as it was where no report can be read", () => {
    const at = now + 31 * dayMs;
    const ended = unverifiedIn(judgedAt(at), on(at));
    const lost = { report: { error: new Error("away") }, verification: undefined };
    const unread = [{ vm: vm(0), appraisal: appraise(good(lost)) }];
    expect(unverifiedIn(unread, on(at + dayMs, ended))).toEqual(ended);
    // A VM that is gone, or no longer pinned, holds nothing up
    expect(unverifiedIn([], { ...on(at + dayMs, ended), pinned: new Set() })).toEqual([]);
  });

  it("may be anything that keeps pinned VMs from being verified: attestation that was switched off", () => {
    const off = good({ vm: { attestation: { enabled: false } } });
    const judged = [{ vm: vm(0), appraisal: appraise(off) }];
    expect(unverifiedNews([], unverifiedIn(judged, on(now)))[0]?.message.text).toBe(
      "❔ 1 pinned VM can't be verified: attestation is not enabled for this VM, says the compute service, but it is pinned.",
    );
  });
});

describe("what vouches for VMs of two teams", () => {
  const ofTeam = (projectName: string, n: number) => ({ ...vm(n), projectName });
  const judged = (at: number) =>
    [ofTeam("a", 0), ofTeam("a", 1), ofTeam("b", 2), ofTeam("shop", 3)].map((one) => ({
      vm: one,
      appraisal: appraise(good({ now: at, says: { timestamp: "" } })),
    }));
  const placeOf = ({ projectName }: { projectName: string }) =>
    projectName === "shop" ? "access" : `teams.${projectName}`;

  it("is an alarm to each about its own, each with an ID of its own", () => {
    const at = now + 31 * dayMs;
    const ended = unverifiedIn(judged(at), { ...on(at), placeOf });
    const said = unverifiedNews([], ended);
    expect(said.map(({ record, message }) => [record.place, message.text])).toEqual([
      ["teams.a", "❔ 2 pinned VMs can't be verified: AMD's revocation list of Genoa has expired."],
      ["teams.b", "❔ 1 pinned VM can't be verified: AMD's revocation list of Genoa has expired."],
      [undefined, "❔ 1 pinned VM can't be verified: AMD's revocation list of Genoa has expired."],
    ]);
    expect(new Set(said.map(({ id }) => id)).size).toBe(3);
    // What no team has is told under the ID that it always had
    expect(said[2]?.id).toBe(unverifiedNews([], unverifiedIn(judgedAt(at), on(at)))[0]?.id);
    const over = unverifiedNews(ended, ended.slice(1));
    expect(over.map(({ message }) => message.text)).toEqual([
      "🟢 No pinned VM of the team a lacks this any longer: AMD's revocation list of Genoa has expired.",
    ]);
    const [among] = amongVms(ended, [ofTeam("a", 1)]);
    expect(among).toMatchObject({ vms: 1, names: ["web-1"], vmId: "vm-1" });
    expect(amongVms(ended, [])).toEqual([]);
  });
});
