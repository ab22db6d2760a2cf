import type { Journal } from "../../core/request/journal.ts";
import * as z from "zod";
import type { Appraiser, Attested } from "../../attestation/appraiser.ts";
import { type Signing, bundleOf } from "../../attestation/bundle.ts";
import type { NamedVm } from "../../attestation/pins.ts";
import {
  type FleetRow,
  fileTime,
  renderAttestation,
  renderFleet,
  reportFile,
} from "./render-appraisal.ts";
import { openSigningKey } from "../../audit/signing-key.ts";
import { Trail } from "../../audit/trail.ts";
import { UserError, messageOf } from "../../errors.ts";
import { type ButtonSpec } from "../../messages/buttons.ts";
import { sentence } from "../../messages/card.ts";
import { type Markdown, atTime, lines, md, name } from "../../messages/markdown.ts";
import {
  type Command,
  type Answer,
  type Target,
  defineCommand,
  dottedName,
  fileFlag,
  runButton,
  targetOrSeveral,
} from "../../registry/define.ts";
import { recentRequests } from "../../core/request/lists.ts";
import { stateWords } from "../../core/request/stage.ts";
import { vmsNamed } from "../../core/submit/resolve-targets.ts";
import { isGlob } from "../../text/glob.ts";
import type { TrailPlace, ReadContext } from "../../commands/context.ts";
import { changesSince } from "./changes-since.ts";
import { pinsPropose } from "./pins-propose.ts";
import { appraisalShape, isoTime } from "../../commands/shapes.ts";

/** VMs attested at a time: as many as the compute client has connections. */
const atOnce = 16;

export const attest = defineCommand({
  name: "vm attest",
  aliases: ["verify"],
  summary: "Verify a VM's attestation evidence by the vendors' roots and your pins",
  example: "/vm attest web-1",
  class: "read",
  onCard: "Attest",
  helpsInError: "check its attestation",
  roles: ["shows-evidence"],
  args: z.object({
    vm: targetOrSeveral("vm").describe("the VM to check"),
    raw: fileFlag("send the raw report as a file"),
    evidence: fileFlag("send everything the result is based on, as a signed file"),
    file: fileFlag("send the results with whole measurements as a file"),
  }),
  async answer({ vm: words, raw, evidence, file: asFile }, context: ReadContext) {
    const form = evidence === true ? "evidence" : asFile === true ? "file" : "table";
    if (isGlob(words) || words.includes(",")) {
      const { asking, inventory } = context;
      const vms = await vmsNamed(asking, words.split(",").filter(Boolean), inventory);
      return attestFleet(words, vms, form, context);
    }
    const vm = await context.resolve("vm", words);
    if (form !== "table") return attestFleet(words, [vm], form, context);
    const read = await context.appraiser.attest(vm);
    const { appraisal, report } = read;
    if (raw !== true) {
      const offer = runButton(
        "Raw report",
        "vm.attest:raw",
        { vm: vm.id, raw: true },
        `of ${vm.name}`,
      );
      const since =
        appraisal.verdict === "failed" ? await sinceVerified(vm.id, context) : undefined;
      const actions = [...proposing(vm, read, context), ...(report?.report ? [offer] : [])];
      return renderAttestation(read.vm, appraisal, { actions, since });
    }
    if (!report)
      throw new UserError(
        `The compute service returned no report of ${vm.name}.`,
        appraisal.reasons[0],
      );
    const file = reportFile(read.vm, report, appraisal, context.now());
    return {
      message: sentence(md`The raw report of ${name(vm.name)} is a file in your direct messages.`),
      file: { ...file, title: `Attestation report of ${vm.name}` },
    };
  },
  data: {
    at: "/v1/vms/{vm}/attestation",
    shape: appraisalShape,
    async readData({ vm: words }, { appraiser, resolve, now }: ReadContext) {
      const vm = await resolve("vm", words);
      const { appraisal } = await appraiser.attest(vm);
      const { validUntil: until } = appraisal;
      const validUntil = until === undefined ? undefined : isoTime(until);
      return { ...appraisal, vmId: vm.id, readAt: isoTime(now()), validUntil };
    },
  },
});

/**
 * The button that proposes a pin, if the VM would verify with one and this person may propose it.
 */
function proposing(
  vm: Target,
  { pins, appraisal: { isPinnable } }: Attested,
  { mayRun }: { mayRun(command: Command, targets?: readonly Target[]): boolean },
): ButtonSpec[] {
  if (!isPinnable || pins.from === "gatehouse.yml" || !mayRun(pinsPropose, [vm])) return [];
  return [runButton("Propose pin", dottedName(pinsPropose), { vm: vm.id }, `for ${vm.name}`)];
}

/**
 * Lists Gatehouse's changes of a VM since it last verified, because one of them may be why it no
 * longer does.
 */
async function sinceVerified(
  vmId: string,
  {
    appraiser,
    journal,
    commands,
    now,
  }: { appraiser: Appraiser; journal: Journal; commands: readonly Command[]; now(): number },
): Promise<Markdown> {
  const verifiedAt = await appraiser.lastVerified(vmId);
  const at = (ms: number) => atTime(ms, now());
  const recent = await recentRequests({ targetId: vmId, most: 20 }, journal);
  const changes = changesSince(verifiedAt ?? 0, recent, commands).map(
    ({ request: { record, state, changedAt }, command: { say } }) => {
      const deed = state === "done" ? say.done : `${say.verb} (${stateWords(state)})`;
      return md`• ${deed} ${at(changedAt)} by ${record.requester.name}, request ${name(record.id)}`;
    },
  );
  const since = verifiedAt
    ? md`since it last verified ${at(verifiedAt)}`
    : md`on record; it never verified before`;
  if (changes.length === 0) return md`*No change from Gatehouse ${since}.*`;
  return lines(md`*Changes from Gatehouse ${since}:*`, ...changes.slice(0, 5));
}

const check = "node gatehouse.mjs attestation check <file> --signer <fingerprint>";

async function evidenceFile(
  title: string,
  rows: Parameters<typeof bundleOf>[0],
  { now, trail: { redis, key, dataDir } }: { now(): number; trail: TrailPlace },
): Promise<NonNullable<Answer["file"]>> {
  const head = await new Trail(redis, key).head();
  const signing: Signing = {
    signer: openSigningKey(dataDir),
    auditHead: head && { seq: head.seq, hash: head.hash },
  };
  const content = `${JSON.stringify(bundleOf(rows, signing), undefined, 2)}\n`;
  return { name: `evidence-${fileTime(now())}.json`, title, content };
}

async function attestFleet(
  words: string,
  vms: readonly NamedVm[],
  form: "table" | "file" | "evidence",
  context: ReadContext,
): Promise<Answer> {
  const waiting = vms.values();
  const rows: FleetRow[] = [];
  const judge = async () => {
    for (const vm of waiting) rows.push(await rowOf(vm, form === "evidence", context));
  };
  await Promise.all(Array.from({ length: atOnce }, judge));
  if (form === "evidence") {
    const file = `The evidence is a file in your direct messages. \`${check}\` judges it again, without a network; \`audit verify\` shows the fingerprint of the key.`;
    return {
      message: renderFleet(words, rows, context.now(), { file }).message,
      file: await evidenceFile("Evidence", rows, context),
    };
  }
  const about = `of ${words}`;
  const actions = [
    runButton("As a file", "vm.attest:file", { vm: words, file: true }, about),
    runButton("Evidence", "vm.attest:evidence", { vm: words, evidence: true }, about),
  ];
  const { message: shown, content } = renderFleet(words, rows, context.now(), { actions });
  if (form === "table") return { message: shown };
  return {
    message: sentence(
      md`The attestation of ${name(words)}, with whole measurements, is a file in your direct messages.`,
    ),
    file: { name: "attestation.csv", title: "Attestation", content },
  };
}

/** The evidence is kept only if it was asked for: for 1,000 VMs it is large. */
async function rowOf(
  vm: NamedVm,
  isWhole: boolean,
  { appraiser }: { appraiser: Appraiser },
): Promise<FleetRow> {
  try {
    const attested = await appraiser.attest(vm);
    return { vm, appraisal: attested.appraisal, ...(isWhole ? { attested } : {}) };
  } catch (error) {
    return { vm, appraisal: undefined, unread: messageOf(error) };
  }
}
