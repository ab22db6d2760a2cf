import { describe, expect, it } from "vitest";
import { sandboxRoots } from "../../sandbox/evidence/vendors.ts";
import { listEndorsements } from "../../src/attestation/endorsement-folder.ts";
import { startChild } from "../faults/stage/child.ts";
import { needs, snp, tdx, turin, vendors } from "./vendors.ts";

describe("the refresher of endorsements", () => {
  it("leaves no part of a file when its process is killed between an answer and its file; the next one goes on", async () => {
    let serve = () => undefined as unknown;
    await using at = await vendors({ onServed: () => serve() });
    const evidence = [snp, turin, tdx].map((one) => one.toString("base64"));
    const files = async () =>
      listEndorsements(at.ours, { roots: sandboxRoots, now: Date.now() }).catch(() => []);
    // As soon as an answer has left, and while files are written
    for (const afterMs of [0, 2, 4]) {
      const told = JSON.stringify({ folder: at.ours, addresses: at.addresses, evidence });
      const child = await startChild("test/attestation/refreshing.ts", [told]);
      const kill = () => child.signal("SIGKILL");
      serve = () => (afterMs === 0 ? kill() : setTimeout(kill, afterMs));
      child.say({ begin: true });
      expect(await child.exited).toBe("SIGKILL");
      const broken = (await files()).filter(({ inspected }) => "problem" in inspected);
      expect(broken).toEqual([]);
    }
    serve = () => undefined;
    await Promise.all([snp, turin, tdx].map((one) => at.refresher.ensure(needs(one))));
    expect(await Promise.all([snp, turin, tdx].map((one) => at.verified(one)))).toEqual(
      Array(3).fill("authentic"),
    );
    // What an answer had brought, and no file had, was asked for again
    expect(at.asked.length).toBeGreaterThan(9);
    expect(new Set(at.asked).size).toBe(9);
  });
});
