// Builds the assets that the binary embeds: node build.mjs [folder]. The same sources give the same bytes.
import { build } from "esbuild";
import { cp, mkdir, readFile, rm, writeFile } from "node:fs/promises";

const to = process.argv[2] ?? "../assets";
await rm(to, { recursive: true, force: true });
await mkdir(to, { recursive: true });
await build({
  entryPoints: { console: "src/main.tsx" },
  outdir: to,
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  jsx: "automatic",
  jsxImportSource: "preact",
  legalComments: "none", // licences.txt has them
  charset: "utf8",
  logLevel: "warning",
});
await cp("static", to, { recursive: true });
const { dependencies } = JSON.parse(await readFile("package.json", "utf8"));
const licences = Object.entries(dependencies).map(async ([name, version]) =>
  `${name} ${version}\n\n${(await readFile(`node_modules/${name}/LICENSE`, "utf8")).trim()}\n`);
await writeFile(to + "/licences.txt", "The console contains:\n\n" + (await Promise.all(licences)).join("\n"));
