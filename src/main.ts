import { catchSignals } from "./start/signals.ts";

// Before anything else is loaded: a signal may come at once
const signals = catchSignals();

const { runCommandLine } = await import("./start/command-line.ts");
const { programs } = await import("./start/programs.ts");

// Whoever only looks at something ends at once
const endAtOnce = () => process.exit(1);
signals.stopping.addEventListener("abort", endAtOnce);
const answered = await runCommandLine(process.argv.slice(2), programs, {
  write: (text) => void process.stdout.write(text),
  complain: (text) => void process.stderr.write(text),
});
if ("role" in answered) {
  signals.stopping.removeEventListener("abort", endAtOnce);
  const { runProcess } = await import("./start/process.ts");
  await runProcess(answered.role, signals);
} else {
  // Set, not called: an export that goes through a pipe must not be cut
  process.exitCode = answered.exitCode;
}
