// The page that the address names. Addresses are behind "#", so that they work below any path of a proxy.
import { useEffect, useState } from "preact/hooks";
import { topicOf, ownName } from "./tree";
import type { Row } from "./types";

export interface Route {
  page: "overview" | "entity";
  path: string; // of the entity
}

export function routeOf(hash: string): Route {
  const match = /^#\/entity\/(.+)$/.exec(hash);
  if (!match?.[1]) return { page: "overview", path: "" };
  try {
    return { page: "entity", path: decodeURIComponent(match[1]) };
  } catch {
    return { page: "overview", path: "" };
  }
}

export function useRoute(): Route {
  const [route, set] = useState(routeOf(location.hash));
  useEffect(() => {
    const moved = () => {
      set(routeOf(location.hash));
      scrollTo(0, 0);
    };
    addEventListener("hashchange", moved);
    return () => removeEventListener("hashchange", moved);
  }, []);
  return route;
}

export function addressOf(path: string): string {
  return "#/entity/" + encodeURIComponent(path);
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
