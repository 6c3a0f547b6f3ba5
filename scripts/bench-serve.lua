-- Requests for wrk against starling serve, on a graph of VERTICES (a million) with FEATURES (64) each:
--   KIND=predict wrk -t1 -c8 -d5s --latency -s scripts/bench-serve.lua http://127.0.0.1:8080
-- KIND is predict, predict100, embeddings, predict_new or nearest.
local kind = os.getenv("KIND") or "predict"
local vertices = tonumber(os.getenv("VERTICES") or "1000000")
local width = tonumber(os.getenv("FEATURES") or "64")

local function some(n)
  local list, seen = {}, {}
  while #list < n do
    local v = math.random(0, vertices - 1)
    if not seen[v] then
      seen[v] = true
      list[#list + 1] = v
    end
  end
  return table.concat(list, ",")
end

local row = {}
for i = 1, width do row[i] = string.format("%.3f", math.sin(i)) end
local features = table.concat(row, ",")

local make = {
  predict = function() return "/predict", '{"vertices":[' .. some(1) .. ']}' end,
  predict100 = function() return "/predict", '{"vertices":[' .. some(100) .. ']}' end,
  embeddings = function() return "/embeddings", '{"vertices":[' .. some(1) .. ']}' end,
  predict_new = function() return "/predict_new", '{"features":[' .. features .. '],"neighbours":[' .. some(10) .. ']}' end,
  nearest = function() return "/nearest", '{"vertex":' .. some(1) .. ',"k":10}' end,
}

request = function()
  local path, body = make[kind]()
  return wrk.format("POST", path, nil, body)
end
