import { plainForm } from "../text/fold.ts";
import type { Inventory, KnownVm } from "../fleet/inventory/inventory.ts";

/** Only this many different words of a text are looked up. */
const mostWords = 1_000;

/** `web-1 in payments`, as Gatehouse's own messages name a VM. */
const inProject =
  /([\p{L}\p{N}][\p{L}\p{N}._-]*)[`*]? in [`*]?([\p{L}\p{N}](?:[\p{L}\p{N}._-]*[\p{L}\p{N}_-])?)/gu;

/**
 * Known VMs whose name, ID, or `project/name` is a whole word of the text. Of VMs that share a name,
 * those that the text names exactly elsewhere, or else all of them. Pass an inventory restricted to
 * what the reader may see.
 */
export async function vmsNamedIn(
  written: string,
  inventory: Inventory,
): Promise<readonly KnownVm[]> {
  const text = plainForm(written);
  const asWords = text.match(/[\p{L}\p{N}][\p{L}\p{N}./_-]*/gu) ?? [];
  const different = new Set(asWords.map((word) => word.replace(/[./_-]+$/, "")));
  /** The VMs that each word names, in the order of the text. */
  const named: (readonly KnownVm[])[] = [];
  const isKnown = async (word: string): Promise<boolean> => {
    const match = await inventory.findVm(word, { onlyKnown: true });
    const vms = "record" in match ? [match.record] : "ambiguous" in match ? match.ambiguous : [];
    named.push(vms);
    return vms.length > 0;
  };
  for (const [, name, project] of [...text.matchAll(inProject)].slice(0, mostWords))
    await isKnown(`${project}/${name}`);
  for (const word of [...different].slice(0, mostWords)) {
    if ((await isKnown(word)) || !word.includes("/")) continue;
    for (const part of word.split("/")) await isKnown(part);
  }
  const exact = new Map(
    named.flatMap((vms) => (vms.length === 1 ? vms : [])).map((vm) => [vm.id, vm]),
  );
  const exactNames = new Set([...exact.values()].map(({ name }) => name));
  const meant = named.flatMap((vms) =>
    vms.filter(({ id, name }) => exact.has(id) || !exactNames.has(name)),
  );
  return [...new Map(meant.map((vm) => [vm.id, vm])).values()];
}
