import { pendingApprovals, press } from "../../people/approvals.ts";
import type { Journalled } from "../../check/count-effects.ts";
import { looking } from "../../stage/looking.ts";
import { judged, onStage, type Row } from "../row.ts";
import type { Stage } from "../../stage/stage.ts";
import { type Wish, wishFor } from "../../people/wishes.ts";

/** Deletes need somebody else, so that there is a time between the ask and the claim. */
export const deletePolicy = `approvals: [{ operations: ["project.delete"], required: 1, expires: 60s }]`;

export function deleteWish(project: string): Wish {
  const name = project.replace("prj-", "team-");
  const form = { [`Type ${name} to confirm`]: name, Reason: "nobody uses it any more" };
  return { command: "project delete", target: project, form };
}

/** Asks in the dialog, as a person does; resolves with the draft that waits for approval. */
export async function askToDelete(stage: Stage, project: string, who = "olivia") {
  const asked = await wishFor(stage, deleteWish(project), { who, channel: "ops" });
  if (!asked) throw new Error("the dialog refuses");
  return looking(
    async () => (await pendingApprovals(stage, 1)).find(({ target }) => target === project),
    10_000,
    async () => `no delete of ${project} waits`,
  );
}

/** Asks, approves and waits until the service has accepted it; from then on `blind` calls find nothing. */
async function acceptedThenBlind(stage: Stage, project: string, blind: string): Promise<number> {
  const draft = await askToDelete(stage, project);
  await press(stage, "amir", draft);
  await stage.until(({ target, state }) => target === project && state === "accepted");
  stage.faults += 1;
  return stage.service.weather({ match: blind, status: 404 });
}

/** The card of a request and everything in its thread, in one text. */
async function toldAbout(stage: Stage, { fields }: Journalled): Promise<string> {
  const [, ts = ""] = (fields["card"] ?? "").split(" ");
  const messages = await stage.slack.messages();
  return JSON.stringify(messages.filter((one) => one.ts === ts || one.threadTs === ts));
}

const endOf = (stage: Stage, project: string) =>
  stage.until(
    ({ target, state, isFinal }) => target === project && (isFinal || state === "unknown"),
  );

export const serviceDeleteRows: Row[] = [
  {
    id: "A14",
    fault: "404 for everything, or only the project, while its delete is confirmed",
    must: "a list outweighs a 404; without proof it ends as unknown",
    unknown: "no trace",
    run: ({ seed }) =>
      onStage({ seed, policy: deletePolicy, vms: 60, transitionMs: [200, 300] }, async (stage) => {
        // It is really deleted meanwhile, but for some time nothing can prove it
        const all = await acceptedThenBlind(stage, "prj-0000", "reads");
        const blind = await stage.until(
          (one) => one.target === "prj-0000" && one.stage.reads?.blindSince !== undefined,
        );
        await stage.service.settled();
        // Reads find nothing for a while after it is gone
        const reads = (await stage.service.calls()).length;
        await looking(
          async () => ((await stage.service.calls()).length > reads + 4 ? true : undefined),
          5000,
          async () => "nobody looks any more",
        );
        const [during] = (await stage.journal()).filter(({ target }) => target === "prj-0000");
        await stage.service.clear(all);
        const deleted = await endOf(stage, "prj-0000");

        // It never goes away, but the service says 404 for it: the list knows better
        for (const project of ["prj-0001", "prj-0002"])
          await stage.service.weather({ match: `DELETE /v1/projects/${project}`, stuck: true });
        await acceptedThenBlind(stage, "prj-0001", "GET /v1/projects/prj-0001");
        const contradicted = await endOf(stage, "prj-0001");
        await acceptedThenBlind(stage, "prj-0002", "reads");
        const unproven = await endOf(stage, "prj-0002");
        await stage.service.clear();
        await stage.quiet();
        const told = await Promise.all(
          [contradicted, unproven].map((one) => toldAbout(stage, one)),
        );
        return judged(
          await stage.check(),
          [
            [
              `it waits while nothing can be read, not ${during?.state}`,
              during?.state === "accepted" && !blind.isFinal,
            ],
            [`it is done once it is proven, not ${deleted.state}`, deleted.state === "done"],
            [
              `a list that has it outweighs a 404: ${contradicted.state}`,
              contradicted.state === "unknown",
            ],
            [`without any read it is unknown, not ${unproven.state}`, unproven.state === "unknown"],
            [
              "nobody was told that these are deleted",
              told.every((text) => text.includes("Delete") && !/\bDeleted\b/.test(text)),
            ],
          ],
          {
            notes: [contradicted.stage.why ?? "", unproven.stage.why ?? ""],
          },
        );
      }),
  },
  {
    id: "A20",
    fault: "a project gains a VM after its delete was approved",
    must: "the delete is canceled, saying what was added",
    unknown: "none",
    run: ({ seed }) =>
      onStage({ seed, policy: deletePolicy }, async (stage) => {
        const [worker] = stage.workers();
        await worker?.arm({ point: "gate", do: "wait" });
        const draft = await askToDelete(stage, "prj-0000");
        await press(stage, "amir", draft);
        await worker?.hit("gate");
        await stage.service.edit("addVm", { project: "prj-0000", name: "late-arrival" });
        stage.faults += 1;
        worker?.go();
        const request = await endOf(stage, "prj-0000");
        await stage.quiet();
        const writes = await stage.service.writes();
        const told = await toldAbout(stage, request);
        return judged(await stage.check(), [
          [
            `cancelled with what came (${request.state}: ${request.stage.why})`,
            request.state === "cancelled" && /late-arrival added/.test(request.stage.why ?? ""),
          ],
          ["the people in the channel read it", /late-arrival/.test(told)],
          [`nothing was sent (${writes.length})`, writes.length === 0],
        ]);
      }),
  },
];
