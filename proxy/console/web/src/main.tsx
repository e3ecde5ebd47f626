import { render } from "preact";
import "uplot/dist/uPlot.min.css";
import "./style.css";
import "./sessions.css";
import "./flow.css";
import { follow } from "./api";
import { App } from "./app";
import { applyTheme } from "./theme";

applyTheme();
const root = document.getElementById("app");
if (root) render(<App />, root);
follow("");
