import { runButton } from "../../registry/define.ts";

export const attestVm = ({ id, name }: { id: string; name: string }) =>
  runButton("Attest", "vm.attest", { vm: id }, name);

/** For several VMs with one problem: the command says of the first what to do about all. */
export const attestFirst = ([vm]: readonly { id: string; name: string }[]) =>
  attestVm(vm ?? { id: "", name: "" });
