import { describe, expect, it } from "vitest";
import { appraise } from "../../../src/attestation/appraise.ts";
import { type DriftRecord, lackingIn } from "../../../src/monitor/drift-records.ts";
import { compareLacks } from "../../../src/features/attest/drift-probe.ts";
import type { KnownVm } from "../../../src/fleet/inventory/inventory.ts";
import { knownVm } from "../../../demo/cards/requests.ts";
import { shownText } from "../../commands/shown-text.ts";
import { good, now, unread as missing } from "../../attestation/reports.ts";

const dayMs = 86_400_000;
const vm = (n: number) => ({ ...knownVm(`web-${n}`), id: `vm-${n}` });
const judgedAt = (at: number, many = 3) =>
  Array.from({ length: many }, (_, n) => ({
    vm: vm(n),
    appraisal: appraise(good({ now: at, says: { timestamp: "" } })),
  }));

type Records = ReadonlyMap<string, DriftRecord>;

/** The records of these VMs before anything was missing. */
const knownAt = (vms: readonly KnownVm[]): Records =>
  new Map(
    vms.map((one) => [one.id, { vm: one, mark: "", reason: "", since: 0, lacks: [] } as const]),
  );
const first30 = Array.from({ length: 30 }, (_, n) => vm(n));

const on = (at: number) => ({
  pinned: new Set(first30.map(({ id }) => id)),
  placeOf: () => "access",
  now: at,
});

const inShort = (records: Records) =>
  [...lackingIn(records.values(), () => "access").values()].map(({ vms, ...lack }) => ({
    ...lack,
    vms: vms.map(({ name }) => name),
  }));

describe("evidence for VMs", () => {
  it("is named from 14 days before it expires, once for all affected VMs", () => {
    const none = compareLacks(knownAt(first30), judgedAt(now), on(now));
    expect(inShort(none.after)).toEqual([]);
    const at = now + 17 * dayMs;
    const { after, changes } = compareLacks(knownAt(first30), judgedAt(at, 5), on(at));
    expect(changes).toEqual([]);
    expect(inShort(after)).toEqual([
      {
        what: "AMD's revocation list for Genoa",
        endsAt: now + 30 * dayMs,
        since: at,
        place: "access",
        vms: ["web-0", "web-1", "web-2", "web-3", "web-4"],
      },
    ]);
  });

  it("is one alarm when it has expired, none while that lasts, and one when it is renewed", () => {
    const at = now + 31 * dayMs;
    const ended = compareLacks(knownAt(first30), judgedAt(at, 5), on(at));
    const [news, ...more] = ended.changes;
    expect(news?.alarm.text).toBe(
      "❔ 5 pinned VMs can't be verified: AMD's revocation list for Genoa has expired.",
    );
    expect(more).toEqual([]);
    expect(news && shownText(news.alarm)).toContain(
      "has expired.\n`web-0`, `web-1`, `web-2` and 2 more.\nUntil it is renewed, no consoles and no rollouts there.",
    );
    // Another VM has the same lack and the first no longer does: the lack stays the same.
    const here = { ...on(at + dayMs), pinned: new Set(first30.slice(1).map(({ id }) => id)) };
    const later = compareLacks(ended.after, judgedAt(at + dayMs, 6), here);
    expect(later.changes).toEqual([]);
    expect(inShort(later.after)).toMatchObject([{ since: at, vms: { length: 5 } }]);
    const over = compareLacks(later.after, judgedAt(now, 6), { ...here, now });
    expect(over.changes.map(({ id }) => id)).toEqual([`${news?.id ?? ""}-over`]);
    expect(inShort(over.after)).toEqual([]);
  });

  it("stays as it was when no report can be read", () => {
    const at = now + 31 * dayMs;
    const { after } = compareLacks(knownAt(first30), judgedAt(at), on(at));
    const lost = { report: { error: new Error("away") }, verification: missing };
    const unread = [{ vm: vm(0), appraisal: appraise(good(lost)) }];
    expect(compareLacks(after, unread, on(at + dayMs))).toEqual({ after, changes: [] });
    // A VM that is gone or no longer pinned doesn't keep the lack open.
    const gone = compareLacks(after, [], { ...on(at + dayMs), pinned: new Set() });
    expect(gone.after.size).toBe(0);
    expect(gone.changes).toHaveLength(1);
  });

  it("may be anything that keeps pinned VMs from being verified: attestation that was switched off", () => {
    const off = good({ vm: { attestation: { enabled: false } } });
    const judged = [{ vm: vm(0), appraisal: appraise(off) }];
    expect(compareLacks(knownAt(first30), judged, on(now)).changes[0]?.alarm.text).toBe(
      "❔ web-0 can't be verified: attestation is not enabled for this VM, says the compute service, but it is pinned.",
    );
  });
});

describe("evidence for VMs of two teams", () => {
  const ofTeam = (projectName: string, n: number) => ({ ...vm(n), projectName });
  const vms = [ofTeam("a", 0), ofTeam("a", 1), ofTeam("b", 2), ofTeam("shop", 3)];
  const judged = (at: number) =>
    vms.map((one) => ({
      vm: one,
      appraisal: appraise(good({ now: at, says: { timestamp: "" } })),
    }));
  const placeOf = ({ projectName }: { projectName: string }) =>
    projectName === "shop" ? "access" : `teams.${projectName}`;

  it("gives each team an alarm about its own VMs, with its own ID", () => {
    const at = now + 31 * dayMs;
    const ended = compareLacks(knownAt(vms), judged(at), { ...on(at), placeOf });
    const said = ended.changes;
    expect(said.map(({ place, alarm }) => [place, alarm.text])).toEqual([
      [
        "teams.a",
        "❔ 2 pinned VMs can't be verified: AMD's revocation list for Genoa has expired.",
      ],
      ["teams.b", "❔ web-2 can't be verified: AMD's revocation list for Genoa has expired."],
      ["access", "❔ web-3 can't be verified: AMD's revocation list for Genoa has expired."],
    ]);
    expect(new Set(said.map(({ id }) => id)).size).toBe(3);
    // The alarm for VMs without a team has an ID without a team.
    const [alone] = compareLacks(knownAt(first30), judgedAt(at), on(at)).changes;
    expect(said[2]?.id).toBe(alone?.id);
    const others = new Set(["vm-2", "vm-3"]);
    const over = compareLacks(ended.after, [], { ...on(at), placeOf, pinned: others });
    expect(over.changes.map(({ alarm }) => alarm.text)).toEqual([
      "🟢 Resolved for all pinned VMs of the team a: AMD's revocation list for Genoa has expired.",
    ]);
    const [among] = lackingIn([...ended.after.values()].filter(({ vm: { id } }) => id === "vm-1"));
    expect(among?.[1].vms).toMatchObject([{ name: "web-1", id: "vm-1" }]);
  });
});
