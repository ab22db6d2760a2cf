import type { Inventory, KnownVm } from "../fleet/inventory/inventory.ts";

/** Only this many different words of a text are looked up. */
const mostWords = 1_000;

/**
 * Known VMs whose name, ID, or `project/name` is a whole word of the text. For a name that several
 * VMs share, all of them. Pass an inventory restricted to what the reader may see.
 */
export async function vmsNamedIn(text: string, inventory: Inventory): Promise<readonly KnownVm[]> {
  const known = async (word: string): Promise<readonly KnownVm[]> => {
    const match = await inventory.findVm(word, { onlyKnown: true });
    if ("found" in match) return [match.found];
    return "ambiguous" in match ? match.ambiguous : [];
  };
  const asWords = text.match(/[\p{L}\p{N}][\p{L}\p{N}./_-]*/gu) ?? [];
  const different = new Set(asWords.map((word) => word.replace(/[./_-]+$/, "")));
  const found: KnownVm[] = [];
  for (const word of [...different].slice(0, mostWords)) {
    const vms = await known(word);
    found.push(...vms);
    if (vms.length > 0 || !word.includes("/")) continue;
    for (const part of word.split("/")) found.push(...(await known(part)));
  }
  return [...new Map(found.map((vm) => [vm.id, vm])).values()];
}
