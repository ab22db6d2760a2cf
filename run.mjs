// Runs one of the project's own programs, as the scripts of package.json do: node run.mjs demo/demo.ts --verbose
import { begin } from "./src/operate/runtime.mjs";

process.argv.splice(1, 1);
void begin(new URL(process.argv[1] || "", import.meta.url));
