import * as z from "zod";
import { pinChange, short } from "../../attestation/pins.ts";
import { measurement } from "../../config/policy-values.ts";
import { md } from "../../messages/markdown.ts";
import { dayNear } from "../../text/time-words.ts";
import { target, defineCommand } from "../../registry/define.ts";

/**
 * The common part of `pins propose` and `pins drop`: another person approves, and no worker sends
 * anything.
 */
export const pinRequest = {
  on: "vm",
  class: "change",
  protect: false,
  minApprovals: 1,
  attestAfter: false,
  effect: { wanted: () => false },
  perform: () => Promise.reject(new Error("a pin is kept, not sent")),
} as const;

/** The reason: all words after the VM. */
export const reason = z
  .string()
  .max(300, { error: "must be at most 300 characters" })
  .optional()
  .meta({ isRest: true, description: "why, for those who approve it" });

export const pinsPropose = defineCommand({
  ...pinRequest,
  name: "gatehouse pins propose",
  summary: "Propose a VM's current measurements as its pin",
  example: "/gatehouse pins propose db-1 new image 4.3",
  args: z.object({
    vm: target("vm").describe("a VM that verifies but for its pin"),
    why: reason,
    values: z
      .string()
      .refine((text) => measurement.safeParse(text).success, {
        error: "must be 96 hex digits, or four times that with commas",
      })
      .optional()
      .meta({ isFlag: true, description: "the values you expect; any others are refused" }),
  }),
  say: {
    verb: "Pin",
    doing: "Pinning",
    done: "Pinned",
    infinitive: (vm) => `pin ${vm} to what it measures now`,
  },
  next: [{ label: "Attest", command: "vm.attest" }],
  risk: ({ target: vm }) => [
    md`⚠️ *From then on, ${vm.name} verifies only with these values.* A pin approved earlier no longer counts.`,
  ],
  plainRisk: () => "A pin approved earlier no longer counts.",
  keeps: {
    async prepare(vm, { values: expected }, { appraiser }) {
      const before = await appraiser.pinsOf(vm);
      const { appraisal } = await appraiser.attest(vm, { asIfPinned: true });
      const { evidence, validUntil, reasons, measurement: measured } = appraisal;
      const values = measured.evidence;
      if (appraisal.verdict !== "verified" || values === undefined) {
        const text = `what ${vm.name} measures can't be pinned: ${reasons.join("; ")}`;
        const hint = "Only a VM that verifies but for its pin can be pinned from here.";
        const why = { text, hint };
        return appraisal.verdict === "could not verify"
          ? { kind: "later", why }
          : { kind: "no", why };
      }
      if (expected !== undefined && measurement.parse(expected) !== values)
        return {
          kind: "no",
          why: { text: `the measurements of ${vm.name} are not these values`, hint: values },
        };
      if (before.values.includes(values))
        return { kind: "no", why: { text: `the pin of ${vm.name} already has these values` } };
      if (before.from === "gatehouse.yml") {
        const text = `the pin of ${vm.name} stands in gatehouse.yml${before.line ?? ""}: only the file changes it`;
        const those = before.values.map((value) => `\`${short(value)}\``).join(", ");
        const hint = `Replace ${those} there by what it measures now: \`${values}\``;
        return { kind: "no", why: { text, hint } };
      }
      const [was] = before.values;
      const until = dayNear(validUntil ?? 0, Date.now());
      const facts = [
        ...pinChange(values, was),
        ["Checked by Gatehouse", `${evidence ?? ""}; verified but for its pin, until ${until}`],
      ] as const;
      return { kind: "ready", values, facts };
    },
    pin: (values) => values,
  },
});
