// The stages that end a chain: the likeliest token, or one by chance.
#include "sampling/random.h"
#include "sampling/stages.h"

namespace quipu::sampling {
namespace {

class Greedy final : public Stage {
 public:
  std::string_view name() const override { return "greedy"; }
  void apply(Candidates& candidates) override { candidates.select(candidates.likeliest().id); }
  std::unique_ptr<Stage> clone() const override { return std::make_unique<Greedy>(*this); }
};

class Draw final : public Stage {
 public:
  explicit Draw(std::uint64_t seed) : seed_(seed), random_(seed) {}
  std::string_view name() const override { return "dist"; }
  void apply(Candidates& candidates) override {
    candidates.normalize();
    candidates.draw(random_.uniform());
  }
  void reset() override { random_ = Random(seed_); }
  std::unique_ptr<Stage> clone() const override { return std::make_unique<Draw>(*this); }

 private:
  std::uint64_t seed_;
  Random random_;
};

}  // namespace

std::unique_ptr<Stage> make_stage(const stage::Greedy&) {
  return std::make_unique<Greedy>();
}
std::unique_ptr<Stage> make_stage(const stage::Draw& description) {
  return std::make_unique<Draw>(description.seed);
}

}  // namespace quipu::sampling
