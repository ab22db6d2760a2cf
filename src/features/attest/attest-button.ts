import { runButton } from "../../registry/define.ts";

export const attestVm = (vm: string) => runButton("Attest", "vm.attest", { vm });
