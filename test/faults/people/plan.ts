import { shuffle } from "../../support/random.ts";
import type { Stage } from "../stage/stage.ts";
import type { Wish } from "./wishes.ts";

/** All commands that change something and end by settling, of every 100 requests. */
export const shares: readonly (readonly [command: string, share: number])[] = [
  ["vm start", 15],
  ["vm stop", 15],
  ["vm restart", 15],
  ["vm resize", 12],
  ["vm snapshot", 12],
  ["vm restore", 10],
  ["project create", 7],
  ["project update", 7],
  ["project delete", 7],
];

/** One in so many meets another request on its target. */
const meeting = 12;

/**
 * What people are going to ask for, in an order of chance, and the world made ready for it. Each request has a target of its
 * own, but for one in twelve. Projects that are changed or deleted are none of those whose VMs others ask about.
 */
export async function planWishes(
  stage: Stage,
  operations: number,
  random: () => number,
): Promise<Wish[]> {
  const vms = (await stage.service.vms()).map(({ id, status }) => ({ id, status }));
  const wishes: Wish[] = [];
  const deck = shares.flatMap(([command, share]) => Array.from({ length: share }, () => command));
  for (let n = 0; n < operations; n++) {
    if (n % deck.length === 0) shuffle(deck, random);
    const earlier = wishes[Math.floor(random() * wishes.length)];
    if (n % meeting === meeting - 1 && earlier) wishes.push(again(earlier));
    else wishes.push(await prepareWish(stage, deck[n % deck.length] ?? "", n, vms, random));
  }
  return shuffle(wishes, random);
}

/** The same once more, by whoever comes; what would make a second thing of the same name is asked for as it was. */
function again(wish: Wish): Wish {
  return wish.command === "vm snapshot" ? { ...wish, flags: `${wish.flags}-too` } : wish;
}

/** Makes the world ready for one more request of this command, on a target that nobody else asks about. */
export async function prepareWish(
  stage: Stage,
  command: string,
  n: number,
  vms: { id: string; status: string }[],
  random: () => number,
): Promise<Wish> {
  if (command.startsWith("project")) return prepareProject(stage, command, n);
  const vm = vms.pop();
  if (!vm) throw new Error("the world has too few VMs for this plan");
  const target = vm.id;
  const wanted = command === "vm start" ? "STOPPED" : "RUNNING";
  if (vm.status !== wanted) await stage.service.edit("setStatus", { vm: vm.id, status: wanted });
  switch (command) {
    case "vm resize":
      return { command, target, flags: "--cpu 8 --memory 32", form: {} };
    case "vm snapshot":
      return { command, target, flags: `nightly-${n}` };
    case "vm restore": {
      const { result: id } = (await stage.service.edit("addSnapshot", {
        vm: target,
        name: `old-${n}`,
      })) as { result: string };
      return {
        command,
        target,
        flags: id,
        form: {
          [`Type ${target} to confirm`]: target,
          Reason: "the campaign wants it",
          // Half of them go without a way back: one call instead of two
          ...(random() < 0.5 ? { "Safety snapshot": ["true"] } : {}),
        },
      };
    }
    default:
      return { command, target };
  }
}

async function prepareProject(stage: Stage, command: string, n: number): Promise<Wish> {
  const name = `own-${n}`;
  if (command === "project create") {
    const flags = `--name ${name} --type TEE_VM --region eu-west-1 --cpu 2 --memory 4 --disk 20`;
    return { command, target: name, flags, form: {} };
  }
  const target = `prj-${name}`;
  await stage.service.edit("addProject", { id: target, name });
  for (const vm of ["a", "b"])
    await stage.service.edit("addVm", {
      project: target,
      id: `vm-${name}-${vm}`,
      name: `${name}-${vm}`,
    });
  if (command === "project delete") {
    const form = { [`Type ${name} to confirm`]: name, Reason: "the campaign wants it" };
    return { command, target, form };
  }
  const flags = n % 2 === 0 ? `--name ${name}-renamed` : "--cpu 8 --memory 32";
  return { command, target, flags, form: {} };
}
