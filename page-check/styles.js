// Formats the style sheets of the page, the labs' report and the handbook, a rule on one line where it fits; with --check, only looks.

import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createFromBuffer } from "@dprint/formatter";

const FOLDERS = [
  "../src/glassformer/page/",
  "../src/glassformer/page/front/",
  "../src/glassformer/labs/",
  "../docs/theme/assets/",
].map((path) => new URL(path, import.meta.url));
const PLUGIN = new URL("node_modules/dprint-plugin-malva/plugin.wasm", import.meta.url);

const styles = createFromBuffer(readFileSync(PLUGIN));
styles.setConfig(
  { lineWidth: 120, indentWidth: 2 },
  { blockSelectorLinebreak: "wrap", preferSingleLine: true, singleLineBlockThreshold: 30 },
);
const sheets = FOLDERS.flatMap((folder) => readdirSync(folder).map((name) => new URL(name, folder)));
for (const sheet of sheets.filter(({ pathname }) => pathname.endsWith(".css"))) {
  const fileText = readFileSync(sheet, "utf8");
  const formatted = styles.formatText({ filePath: "sheet.css", fileText });
  if (formatted === fileText) continue;
  if (process.argv.includes("--check")) {
    console.error(`${sheet.pathname} is not formatted; run: make format-page`);
    process.exitCode = 1;
  } else {
    writeFileSync(sheet, formatted);
  }
}
