// The page that the address names. Addresses are behind "#", so that they work below any path of a proxy.
import { useEffect, useState } from "preact/hooks";
import { topicOf, ownName } from "./tree";
import type { Row } from "./types";

export interface Route {
  page: "overview" | "dead-letters" | "flow" | "entity";
  path: string; // of the entity
  tab: string; // of the page; empty: the first
  query: URLSearchParams; // what the tab shows, such as ?session=customer-1
}

const overview: Route = { page: "overview", path: "", tab: "", query: new URLSearchParams() };

export function routeOf(hash: string): Route {
  const [place = "", query] = hash.split("?", 2);
  if (place === "#/flow") return { ...overview, page: "flow" };
  if (place === "#/dead-letters") return { ...overview, page: "dead-letters" };
  const match = /^#\/entity\/([^/]+)(?:\/([a-z-]+))?$/.exec(place);
  if (!match?.[1]) return overview;
  try {
    return { page: "entity", path: decodeURIComponent(match[1]), tab: match[2] ?? "", query: new URLSearchParams(query) };
  } catch {
    return overview;
  }
}

export function useRoute(): Route {
  const [route, set] = useState(routeOf(location.hash));
  useEffect(() => {
    let at = routeOf(location.hash);
    const moved = () => {
      const next = routeOf(location.hash);
      if (next.page !== at.page || next.path !== at.path) scrollTo(0, 0);
      at = next;
      set(next);
    };
    addEventListener("hashchange", moved);
    return () => removeEventListener("hashchange", moved);
  }, []);
  return route;
}

/** addressOf is the address of the page of an entity, or of a tab of it that shows what query says. */
export function addressOf(path: string, tab = "", query: Record<string, string> = {}): string {
  const more = new URLSearchParams(query).toString();
  return "#/entity/" + encodeURIComponent(path) + (tab && "/" + tab) + (more && "?" + more);
}

/** resourceOf is the route of an entity in the API. */
export function resourceOf(row: Row): string {
  if (row.kind === "queue") return "/v1/queues/" + encodeURIComponent(row.path);
  if (row.kind === "topic") return "/v1/topics/" + encodeURIComponent(row.path);
  return "/v1/topics/" + encodeURIComponent(topicOf(row.path)) + "/subscriptions/" + encodeURIComponent(ownName(row.path));
}

/** named is an entity as the command line has it. */
export function named(row: Row): string {
  if (row.kind === "topic") return "topics/" + row.path;
  return row.kind === "queue" ? row.path : "topics/" + row.path;
}
